//go:build !linux

package doctor

import (
	"cage/report"
	"cage/spawn"
)

// onMachine names what this system has no means for.
func onMachine(spawn.Stage) []report.Finding {
	return []report.Finding{
		degraded("processes", "what a command starts is found by listing processes: what was never listed while its parent lived is not ended", ""),
		note("limits", "system calls cannot be refused to a command on this system"),
	}
}

// onEventRoom has nothing to tell: no limit is shared by programs here.
func onEventRoom() []report.Finding { return nil }
