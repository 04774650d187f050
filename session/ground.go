package session

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"cage/internal/anchors"
	"cage/internal/gitrepo"
	"cage/internal/proc"
	"cage/internal/program"
	"cage/report"
	"cage/rules"
)

// ground is where a session stands: the machine's processes, the root and its
// repository.
type ground struct {
	reaper *proc.Reaper
	layout rules.Layout
	git    rules.Git
	// repo is nil outside git; found is it with what git said of it then.
	repo  *gitrepo.Repo
	found *gitrepo.Found
	// hooksBy is the configuration file that names the hooks folder.
	hooksBy string
	// hooksWay are the links on the way to that folder that lie outside
	// everything that is guarded.
	hooksWay []rules.Path
}

func (g *ground) close() {
	if g.reaper != nil {
		g.reaper.Close()
	}
}

// locate finds the root of the current directory.
func (s *session) locate(ctx context.Context) error {
	var err error
	if s.dir, err = currentDirectory(); err != nil {
		return err
	}
	return s.stand(ctx)
}

func currentDirectory() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", refusal(report.CodeRoot, "change into a directory that exists and that you may enter", fmt.Errorf("find the current directory: %w", err))
	}
	return dir, nil
}

// stand finds the root of the directory where the session was started, by an
// unfinished session's note where git gives no answer, and chooses the places
// for the cage's own files.
func (s *session) stand(ctx context.Context) error {
	var err error
	if s.reaper, err = proc.NewReaper(); err != nil {
		return fmt.Errorf("take charge of child processes: %w", err)
	}
	broken := s.survey(ctx)
	if !s.standAsNoted(broken != nil) && broken != nil {
		return broken
	}
	s.places = choosePlaces(s.layout, program.Variables(s.Env))
	return nil
}

// helperOutput bounds what is read of a helper's output: 64 MiB.
const helperOutput = 64 << 20

// runHelper runs a program through the one place that waits for children.
func (g *ground) runHelper(ctx context.Context, c program.Call) (program.Result, error) {
	out, err := g.reaper.Run(ctx, proc.Helper{
		Path: c.Path, Args: append([]string{c.Path}, c.Args...), Env: c.Env, Dir: c.Dir, Input: c.Stdin, MaxOutput: helperOutput,
	})
	if err == nil && out.Exit.Signal != 0 {
		err = fmt.Errorf("run %s: ended by the signal %s", c.Path, out.Exit.Signal)
	}
	return program.Result{Stdout: out.Stdout, Stderr: out.Stderr, ExitCode: out.Exit.Status()}, err
}

// survey finds the root and the git directories of the directory where the
// session was started. Outside git means that no `.git` stands anywhere above.
func (s *session) survey(ctx context.Context) error {
	s.git, s.hooksWay = rules.Git{}, nil
	dir, err := filepath.EvalSymlinks(s.dir)
	if err != nil {
		return refusal(report.CodeRoot, "make sure that the directory exists and can be entered",
			fmt.Errorf("find the root: %w", err))
	}
	dotGit, inside, err := gitrepo.DotGitAbove(dir)
	if err != nil {
		return refusal(report.CodeRoot, "make the directories above readable", fmt.Errorf("look for .git: %w", err))
	}
	if !inside {
		s.layout = rules.Layout{Root: dir}
		return nil
	}
	// Where git fails, this is what is known.
	s.layout = rules.Layout{Root: filepath.Dir(dotGit)}
	return s.surveyGit(ctx, dir, dotGit)
}

func (s *session) surveyGit(ctx context.Context, dir, dotGit string) error {
	top := filepath.Dir(dotGit)
	binary, err := program.Finder(s.Env, top)("git")
	if err != nil {
		return refusal(report.CodeGit, "install git, or put it into PATH outside "+report.Quote(top), err)
	}
	if s.found, err = gitrepo.Discover(ctx, s.runHelper, binary, dir); err != nil {
		return gitRefusal(err)
	}
	s.repo = s.found.Repo
	config, err := s.found.Config(ctx)
	if err != nil {
		return gitRefusal(err)
	}
	s.hooksBy = config.HooksBy
	s.layout, s.git = anchors.Of(s.repo, config)
	for _, link := range config.HooksLinks {
		if p := s.layout.Locate(link); p.Anchor == rules.Outside {
			s.hooksWay = append(s.hooksWay, p)
		}
	}
	return nil
}

func gitRefusal(err error) error {
	return refusal(report.CodeGit, gitrepo.Hint(err), fmt.Errorf("git refuses: %w", err))
}
