package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"cage/internal/console"
	"cage/session"
	"cage/snapshot"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// guardFlags are the flags of whatever guards a root, as they were given.
type guardFlags struct {
	json             bool
	reportFile       file
	reportOnly       bool
	interval         interval
	grace            delay
	contestLimit     optionalCount
	ruleContestLimit optionalCount
	overrides        paths
	maxFileBytes     byteCount
	maxFiles         count
	maxTotalBytes    byteCount
	oversize         choice
	keepDisplaced    choice
	bell             choice
}

// defaultLimits are the caps of what is protected.
func defaultLimits() snapshot.Limits {
	return snapshot.Limits{FileBytes: 5 << 20, Files: 5000, TotalBytes: 64 << 20}
}

func newGuardFlags() guardFlags {
	limits := defaultLimits()
	return guardFlags{
		interval: interval(time.Second), grace: delay(2 * time.Second),
		maxFileBytes: byteCount(limits.FileBytes), maxFiles: count(limits.Files), maxTotalBytes: byteCount(limits.TotalBytes),
		oversize:      choice{value: "refuse", allowed: []string{"refuse", "detect"}},
		keepDisplaced: choice{value: "on", allowed: []string{"on", "off"}},
		bell:          choice{value: "auto", allowed: []string{"auto", "always", "never"}},
	}
}

// The titles under which help shows the flags.
const (
	groupProtected = "What is protected"
	groupDone      = "What is done"
	groupTold      = "What you are told"
)

// adder adds flags to a command, under titles, in the order in which help shows
// them.
type adder struct{ *cobra.Command }

func addTo(c *cobra.Command) adder {
	c.Flags().SortFlags = false
	return adder{c}
}

func (a adder) add(group string, v pflag.Value, name, usage string) *pflag.Flag {
	flag := a.Flags().VarPF(v, name, "", usage)
	flag.Annotations = map[string][]string{groupKey: {group}}
	return flag
}

func (a adder) addSwitch(group string, to *bool, name, usage string) {
	a.Flags().BoolVar(to, name, false, usage)
	a.Flags().Lookup(name).Annotations = map[string][]string{groupKey: {group}}
}

// addGuarding adds what says which files are guarded, and how.
func (f *guardFlags) addGuarding(a adder) {
	a.add(groupProtected, &f.overrides, "allow-override", "only list changes to this path, relative to the root, and below it, in this run; repeatable")
	a.add(groupProtected, &f.maxFiles, "max-files", "most protected files")
	a.add(groupProtected, &f.maxFileBytes, "max-file-bytes", "largest protected file").DefValue = "5 MiB"
	a.add(groupProtected, &f.maxTotalBytes, "max-total-bytes", "all protected files together").DefValue = "64 MiB"
	a.add(groupProtected, &f.oversize, "oversize", "what is larger: refuse to start, or detect changes without undoing them")

	a.addSwitch(groupDone, &f.reportOnly, "report-only", "list changes, undo nothing")
	a.add(groupDone, &f.interval, "watch-interval", "time between two comparisons of everything")
	a.add(groupDone, (*milliseconds)(&f.interval), "watch-interval-ms", "the same in milliseconds").DefValue = ""
	a.add(groupDone, &f.keepDisplaced, "keep-displaced", "keep the files that a restore displaced")
}

// addTelling adds what says who is told what; json says what --json does.
func (f *guardFlags) addTelling(a adder, json string) {
	a.addSwitch(groupTold, &f.json, "json", json)
	a.add(groupTold, &f.reportFile, "report-file", "write the report into this file")
	a.add(groupTold, &f.bell, "bell", "ring for every event; auto where stderr is a terminal")
}

func (f *guardFlags) guarding() session.Guarding {
	return session.Guarding{
		Env: os.Environ(), Messages: os.Stderr,
		Bell:       f.bell.value == "always" || f.bell.value == "auto" && console.IsTerminal(os.Stderr),
		ReportOnly: f.reportOnly,
		Interval:   time.Duration(f.interval), Grace: time.Duration(f.grace),
		ContestLimit: f.contestLimit.value, RuleContestLimit: f.ruleContestLimit.value,
		Overrides: f.overrides,
		Limits: snapshot.Limits{
			FileBytes: int64(f.maxFileBytes), Files: int(f.maxFiles), TotalBytes: int64(f.maxTotalBytes),
			DetectOversize: f.oversize.value == "detect", KeepNothing: f.reportOnly,
		},
		DropDisplaced: f.keepDisplaced.value == "off",
		ReportFile:    string(f.reportFile),
	}
}

// completeValues lets shells complete what the flags of a command take: words
// for a choice, files where one is named, and nothing for a number.
func completeValues(c *cobra.Command) {
	c.Flags().VisitAll(func(flag *pflag.Flag) {
		words, directive := []string(nil), cobra.ShellCompDirectiveNoFileComp
		switch v := flag.Value.(type) {
		case *choice:
			words = v.allowed
		case *file, *paths:
			directive = cobra.ShellCompDirectiveDefault
		}
		// It fails only for a flag that is not there or came twice.
		_ = c.RegisterFlagCompletionFunc(flag.Name, cobra.FixedCompletions(words, directive))
	})
}

// takeSignals keeps signals from ending the program. Once the session is over,
// which takes them too, one ends the program with the session's exit code: it
// can only be meant for whoever keeps the report from being printed.
func takeSignals() (over func(code int)) {
	signals := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	return func(code int) {
		select {
		case <-signals: // was the session's
		default:
		}
		go func() {
			<-signals
			os.Exit(code)
		}()
	}
}
