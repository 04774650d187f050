package sessionlog

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"cage/report"
)

// Text spells the lines of a log for people, on its way to Out. It is for
// [Log.Follow].
type Text struct{ Out io.Writer }

// Write spells one line. Events that the start and the end of a session tell of
// in words of their own are left out.
func (t Text) Write(line []byte) (int, error) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		return 0, fmt.Errorf("read a line of the log: %w", err)
	}
	if text := e.text(); text != "" {
		if _, err := io.WriteString(t.Out, report.Live(e.At, text)); err != nil {
			return 0, err
		}
	}
	return len(line), nil
}

// event is a line of a log, as far as people are told of it.
type event struct {
	At   time.Time `json:"at"`
	Name string    `json:"event"`
	report.Change
	Scope   report.HaltScope `json:"scope"`
	Signal  string           `json:"signal"`
	Reason  string           `json:"reason"`
	Message string           `json:"message"`
	Lines   int              `json:"lines"`
}

func (e *event) text() string {
	switch e.Name {
	case "restored", "kept":
		return e.Line()
	case "detect_only", "revert_failed":
		e.Outcome = report.Outcome(e.Name)
		return e.Line()
	case "contested":
		return report.Quote(e.Bytes()) + " is changed again and again: it is put back after pauses from now on, which grow as long as that goes on"
	case "halt":
		return "halt (" + string(e.Scope) + "): " + report.Quote(e.Bytes()) + "; the program is being ended"
	case "overflow":
		return "events were lost; everything is compared again"
	case "degraded":
		return "events are missing: " + e.Reason
	case "watch_error":
		return "trouble: " + e.Message
	case "trapped_signal":
		return "trapped " + e.Signal
	case "lines_lost":
		return fmt.Sprintf("%d lines are missing here; the session log has them", e.Lines)
	default:
		return ""
	}
}
