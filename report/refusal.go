package report

import "strings"

// Refusal is a Failure on its way to whoever tells of it, with its cause.
type Refusal struct {
	Failure
	Cause error
}

// The codes of refusals that more than one package has cause for.
const (
	CodeRoot   = "GXT_CAGE_ROOT_UNUSABLE"
	CodeGit    = "GXT_CAGE_GIT_FAILED"
	CodeHost   = "GXT_CAGE_HOST_UNUSABLE"
	CodeActive = "GXT_CAGE_SESSION_ACTIVE"
)

// ExitRefused is the exit code of everything that fails closed.
const ExitRefused = 2

// Refuse makes a Refusal of its cause, with a hint what to do about it.
func Refuse(code, hint string, cause error) *Refusal {
	return &Refusal{
		Failure: Failure{
			ErrorCode: code, Message: cause.Error(), FixHints: List[string]{hint}, ExitCode: ExitRefused,
		},
		Cause: cause,
	}
}

func (r *Refusal) Error() string { return r.Message }

func (r *Refusal) Unwrap() error { return r.Cause }

// OneLine is Line for readers who take one line.
func (f Failure) OneLine() string {
	text := "cage: [" + plain(f.ErrorCode) + "] " + plain(strings.Join(strings.Fields(f.Message), " "))
	if hint := strings.Join(f.FixHints, "; or "); hint != "" {
		text += "; fix: " + plain(strings.Join(strings.Fields(hint), " "))
	}
	return text + "\n"
}
