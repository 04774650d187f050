package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"cage/check"
	"cage/internal/githook"
	"cage/report"
)

// codeHook is the code of a hook that cannot be installed.
const codeHook = "GXT_CAGE_HOOK_UNUSABLE"

// installHook installs the hook that runs what the other flags ask for.
func (f *checkFlags) installHook(ctx context.Context, args []string) error {
	if len(args) > 0 || len(f.overrides) > 0 || given(f.commits != "", f.hook.value != "", f.json, f.sarif, f.github) > 0 {
		return usage("check --install-hook takes --staged or --pre-push and nothing else; see cage check --help")
	}
	o, err := f.options(nil)
	if err != nil {
		return err
	}
	folder, shared, err := check.HooksFolder(ctx, o)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	name, order := "pre-commit", "--staged"
	if f.prePush {
		name, order = "pre-push", "--pre-push"
	}
	done, err := githook.Install(folder, name, self, "check", order)
	if err != nil {
		return report.Refuse(codeHook, hookHint(err, name, order), err)
	}
	fmt.Fprint(os.Stderr, installedText(done, self, order, shared))
	return nil
}

func installedText(done githook.Installed, program, order string, shared bool) string {
	hook := report.Quote(done.Hook)
	if done.Already {
		return "cage: " + hook + " is installed already\n"
	}
	text := "cage: installed " + hook + ", which runs " + report.Quote(program) + " check " + order + "\n"
	if done.Chained != "" {
		text += "cage: the hook that was there runs first and is now " + report.Quote(done.Chained) + "\n"
	}
	if shared {
		text += report.Warning("core.hooksPath leads out of this repository: every repository that has its hooks there runs this one")
	}
	return text
}

func hookHint(err error, name, order string) string {
	line := "`cage check " + order + "`"
	switch {
	case errors.Is(err, githook.ErrManaged):
		return "put the line " + line + " into .husky/" + name
	case errors.Is(err, githook.ErrOff):
		return "unset core.hooksPath, or have it lead to a folder"
	case errors.Is(err, githook.ErrTaken):
		return "put the line " + line + " into the hook yourself, or remove the one that is not needed"
	default:
		return "put the line " + line + " into the hook " + name + " yourself"
	}
}
