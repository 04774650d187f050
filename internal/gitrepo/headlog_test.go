package gitrepo

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestHeldOnTheWayOfHead(t *testing.T) {
	alone(t)
	for _, format := range []string{SHA1, SHA256} {
		t.Run(format, func(t *testing.T) {
			r := initRepo(t, physicalTemp(t), "--object-format="+format)
			write(t, r+"/a", "one")
			commit(t, r)
			git(t, r, "checkout", "-q", "-b", "before")
			write(t, r+"/a", "before")
			commit(t, r)
			git(t, r, "checkout", "-q", "main")
			git(t, r, "checkout", "-q", "-b", "during")
			write(t, r+"/a", "during")
			write(t, r+"/b", "during")
			commit(t, r)
			git(t, r, "checkout", "-q", "main")
			repo := discover(t, r)
			later := repo.FromNow()
			ask := func(of *Repo, want map[State]bool) {
				t.Helper()
				expect(t, func(states []State) ([]bool, error) { return of.Held(context.Background(), states) }, want)
			}
			none := map[State]bool{
				file(repo, "a", "one"): true, file(repo, "a", "before"): false, file(repo, "a", "during"): false,
				file(repo, "b", "during"): false, {Path: "b"}: true, {Path: "a"}: false,
			}
			ask(later, none)
			git(t, r, "checkout", "-q", "during")
			git(t, r, "checkout", "-q", "main")
			ask(repo, none)
			ask(later, map[State]bool{
				file(repo, "a", "one"): true, file(repo, "a", "before"): false, file(repo, "a", "during"): true,
				file(repo, "b", "during"): true, {Path: "b"}: true, {Path: "a"}: false, {Path: "../b"}: false,
			})
		})
	}
}

// Whatever stands in the place of HEAD's log, the answer is the one without it.
func TestHeadLogIsNoLog(t *testing.T) {
	alone(t)
	for name, spoil := range map[string]func(t *testing.T, log string){
		"gone":      func(*testing.T, string) {},
		"fifo":      func(t *testing.T, log string) { fatal(t, syscall.Mkfifo(log, 0o600)) },
		"directory": func(t *testing.T, log string) { fatal(t, os.Mkdir(log, 0o700)) },
		"link":      func(t *testing.T, log string) { fatal(t, os.Symlink("/proc/self/environ", log)) },
		"noise": func(t *testing.T, log string) {
			fatal(t, os.WriteFile(log, []byte(strings.Repeat("x y z\n\x00 --help \n 0123 0123\n", 10_000)), 0o600))
		},
		"ids of nothing": func(t *testing.T, log string) {
			line := strings.Repeat("0", 40) + " " + strings.Repeat("a", 40) + " A <a> 0 +0000\tx\n"
			fatal(t, os.WriteFile(log, []byte(strings.Repeat(line, 1000)), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := initRepo(t, physicalTemp(t))
			write(t, r+"/a", "one")
			commit(t, r)
			repo := discover(t, r).FromNow()
			fatal(t, os.Remove(repo.headLog()))
			spoil(t, repo.headLog())
			expect(t, func(states []State) ([]bool, error) { return repo.Held(context.Background(), states) }, map[State]bool{
				file(repo, "a", "one"): true, file(repo, "a", "two"): false, {Path: "b"}: true,
			})
		})
	}
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
