package report

// Refusal is a Failure on its way to whoever tells of it, with its cause.
type Refusal struct {
	Failure
	Cause error
}

func (r *Refusal) Error() string { return r.Message }

func (r *Refusal) Unwrap() error { return r.Cause }
