package report

// LimitFacts is what changes the limits of a session.
type LimitFacts struct {
	// Watch is false where there is one check at the exit only.
	Watch      bool
	ReportOnly bool
	// Pushes is set where pushes were judged. Unjudged says why they were not,
	// and is empty also where there is nothing to push.
	Pushes   bool
	Unjudged string
	// NoCommand says that it was a watch, and Program that it could halt one.
	NoCommand, Program bool
	// Skipped are directories that the scan for names could not enter, as
	// bytes.
	Skipped []string
	// Astray are places that rules name and that links lead to what is not
	// protected, as bytes.
	Astray []string
}

// Limits returns the sentences of `limits[]`: what a clean report does not
// say. They begin with what this session's way of restoring leaves open.
func Limits(f LimitFacts) []string {
	limits := []string{
		f.reach(),
		"Reads are not seen: a secret can be read and sent away.",
		"Network and API effects are not seen.",
		"Paths outside the protected set are not checked, and neither are the git directories of nested repositories.",
	}
	limits = append(limits, f.others()...)
	switch {
	case f.Pushes:
		limits = append(limits, "Pushes are judged where git runs the session's hook: --no-verify, core.hooksPath on the command line, a cleared environment, another client or another clone goes past it.")
	case f.Unjudged != "":
		limits = append(limits, "Pushes were not judged: "+f.Unjudged+".")
	}
	for _, dir := range f.Skipped {
		limits = append(limits, "Not scanned for protected names, because it could not be entered: "+Quote(dir)+".")
	}
	for _, place := range f.Astray {
		limits = append(limits, "Protected as a link, or behind one, and not what it leads to: "+Quote(place)+".")
	}
	return limits
}

// others says what is open towards those who change files.
func (f LimitFacts) others() []string {
	if !f.NoCommand {
		return []string{
			"Nobody's edits are told apart: a person's change to a protected file is undone like the command's.",
			"Work handed to something outside the run, such as a tmux server, systemd-run or a container engine, is not seen and not ended.",
			"The command runs as the same user and can attack the cage, its state and this report, which is a local record and no attestation.",
		}
	}
	reach := "Nothing is ended: a program that changes a file again and again goes on, and the file is put back after pauses."
	if f.Program {
		reach = "A halt reaches what a listing shows of the program's processes: what had left its tree before is not ended."
	}
	return []string{
		"Nobody's edits are told apart: a person's change to a protected file is undone like a program's.",
		reach,
		"Programs of the same user can end the watch, and attack it, its state and this report, which is a local record and no attestation.",
	}
}

func (f LimitFacts) reach() string {
	switch {
	case f.ReportOnly:
		return "Nothing was restored: changes were only listed."
	case f.Watch:
		return "Changes are undone, not prevented: one can be read, run or committed before it is undone."
	default:
		return "Changes were undone once, when the command had ended: until then they could be read, run, committed or pushed, and one that was gone again by then was not seen."
	}
}

// oneLine is the limits as the summary has them.
func oneLine(d *Document) string {
	switch {
	case d.RevertMode == ModeReportOnly:
		return "listed only, nothing restored; reads, network and other files are not seen"
	case d.Watch.Enabled:
		return "undone, not prevented; reads, network and other files are not seen"
	default:
		return "checked once, at the exit; reads, network and other files are not seen"
	}
}
