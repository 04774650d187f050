package snapshot

import (
	"os"
	"path/filepath"
	"strings"

	"cage/rules"
)

// maxLinks is the kernel's limit for symlinks in one resolution
// (path_resolution(7)).
const maxLinks = 40

// Targets follows the protected symlinks among paths and returns what they
// lead to, as additions to the plan: the regular file at the end, and the
// links on the way that lie in an anchor. What lies outside every anchor can
// only be watched for changes.
func Targets(trees *Trees, plan *rules.Plan, paths []rules.Path) []rules.Joined {
	var joined []rules.Joined
	for _, p := range paths {
		verdict, ok := plan.Classify(p)
		if !ok {
			continue
		}
		for _, step := range follow(trees.layout, p) {
			if _, covered := plan.Classify(step); !covered {
				joined = append(joined, rules.Joined{Path: step, Verdict: verdict})
			}
		}
	}
	return joined
}

// follow returns the path of every symlink that p leads through and of the
// regular file it ends at.
func follow(layout rules.Layout, p rules.Path) []rules.Path {
	var steps []rules.Path
	abs := layout.Abs(p)
	for range maxLinks {
		target, err := os.Readlink(abs)
		if err != nil {
			return steps
		}
		if abs, err = physical(filepath.Dir(abs), target); err != nil {
			return steps
		}
		info, err := os.Lstat(abs)
		if err != nil {
			return steps
		}
		step := layout.Locate(abs)
		isLink := info.Mode()&os.ModeSymlink != 0
		if info.Mode().IsRegular() || isLink && step.Anchor != rules.Outside {
			steps = append(steps, step)
		}
		if !isLink {
			return steps
		}
	}
	return steps
}

// physical returns the path of a link's target with no symlink in the
// directories above it.
func physical(dir, target string) (string, error) {
	if !filepath.IsAbs(target) {
		target = dir + "/" + target
	}
	// Split by hand: filepath.Dir would take "link/.." for nothing.
	slash := strings.LastIndexByte(target, '/')
	parent, err := filepath.EvalSymlinks(target[:slash+1])
	if err != nil {
		return "", err
	}
	return filepath.Join(parent, target[slash+1:]), nil
}
