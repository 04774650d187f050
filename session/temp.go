package session

import (
	"slices"

	"cage/internal/tempdir"
	"cage/report"
	"cage/spawn"
)

// privateTmp is the command's own temporary directory, and why it could not be
// removed; nil where it was.
type privateTmp struct {
	dir  *tempdir.Dir
	gone bool
	left error
}

// makeTemp makes the command's own temporary directory, if it is to have one. It
// has the session's name, so that the next session can remove it.
func (s *session) makeTemp(environment *spawn.Environment) error {
	if !s.PrivateTmp {
		return nil
	}
	dir, err := tempdir.Make(s.temp, s.id)
	if err != nil {
		return err
	}
	s.privateTmp = &privateTmp{dir: dir}
	environment.Set = append(slices.Clip(environment.Set), "TMPDIR="+dir.Path())
	return nil
}

// removeTemp comes when the run has ended.
func (s *session) removeTemp() {
	if s.privateTmp == nil || s.privateTmp.gone {
		return
	}
	s.privateTmp.gone = true
	if s.privateTmp.left = s.privateTmp.dir.Remove(); s.privateTmp.left != nil {
		s.tell(s.privateTmp.left.Error())
	}
}

// describe tells of the directory; nil where there was none.
func (p *privateTmp) describe() *report.PrivateTmp {
	if p == nil {
		return nil
	}
	d := &report.PrivateTmp{Name: report.NameOf(p.dir.Path()), Removed: p.left == nil}
	if p.left != nil {
		reason := p.left.Error()
		d.Reason = &reason
	}
	return d
}

// removeTempOf removes what a session that did not end left of its command's
// temporary directory.
func (s *session) removeTempOf(id string) {
	for _, temp := range s.tempsOf(id) {
		if err := tempdir.Remove(temp, id); err != nil {
			s.warnings = append(s.warnings, err.Error())
		}
	}
}
