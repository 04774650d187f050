package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// Promise: the action is one that GitHub runs, and nothing that an event says
// becomes part of a script.
func TestActionIsSound(t *testing.T) {
	var action struct {
		Name, Description string
		Inputs            map[string]struct{ Description, Default string }
		Runs              struct {
			Using string
			Steps []struct {
				Uses, Run, Shell, ID string
				Env, With            map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(page(t, "action.yml")), &action); err != nil {
		t.Fatal(err)
	}
	if action.Name == "" || action.Description == "" || action.Runs.Using != "composite" || len(action.Runs.Steps) == 0 {
		t.Errorf("it is no composite action: %+v", action)
	}
	given := map[string]string{}
	for _, step := range action.Runs.Steps {
		if (step.Run == "") == (step.Uses == "") || step.Run != "" && step.Shell == "" {
			t.Errorf("step %+v neither runs nor uses one thing", step)
		}
		if strings.Contains(step.Run, "${{") {
			t.Errorf("an expression stands in the script %q", step.Run)
		}
		if step.ID == "check" {
			given = step.Env
		}
	}
	script := page(t, "packaging/action")
	for _, name := range []string{"RANGE", "OVERRIDES", "BASE", "HEAD", "DEFAULT_BRANCH"} {
		if _, ok := given[name]; !ok || !strings.Contains(script, "$"+name) {
			t.Errorf("the step and its script do not agree on %s", name)
		}
	}
	for name, input := range action.Inputs {
		if input.Description == "" {
			t.Errorf("input %s is not explained", name)
		}
		if !strings.Contains(page(t, "docs/cage-check.md"), "`"+name+"`") {
			t.Errorf("no page tells of input %s", name)
		}
	}
}

// Promise: pre-commit gets a hook that is called once, without file names, for
// every commit.
func TestPreCommitManifest(t *testing.T) {
	var hooks []struct {
		ID, Name, Entry, Language string
		PassFilenames             *bool `yaml:"pass_filenames"`
		AlwaysRun                 bool  `yaml:"always_run"`
		RequireSerial             bool  `yaml:"require_serial"`
	}
	if err := yaml.Unmarshal([]byte(page(t, ".pre-commit-hooks.yaml")), &hooks); err != nil {
		t.Fatal(err)
	}
	for _, hook := range hooks {
		if hook.PassFilenames == nil || *hook.PassFilenames || !hook.AlwaysRun || !hook.RequireSerial {
			t.Errorf("%s is called for some files, or side by side: %+v", hook.ID, hook)
		}
		if !strings.Contains(page(t, "docs/cage-check.md"), hook.ID) {
			t.Errorf("no page tells of %s", hook.ID)
		}
	}
	if len(hooks) == 0 {
		t.Error("there is no hook")
	}
	if _, err := os.Stat(filepath.Join("..", "..", "packaging", "action")); err != nil {
		t.Error(err)
	}
}
