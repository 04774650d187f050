package anchors

import (
	"fmt"
	"os"
	"path/filepath"

	"cage/rules"
)

// OverridesFrom refuses an override that a caller in dir spelled from there:
// it counts from the root, where it would let something else through. Both
// directories are free of links.
func OverridesFrom(dir, root string, overrides []string) error {
	for _, word := range overrides {
		meant := filepath.Join(dir, word)
		rel, err := filepath.Rel(root, meant)
		if err != nil || !filepath.IsLocal(rel) || filepath.IsAbs(word) || rel == filepath.Clean(word) || stands(filepath.Join(root, word)) || !stands(meant) {
			continue
		}
		return &rules.Error{
			Code:    rules.CodeOverride,
			Message: fmt.Sprintf("--allow-override %q is there from the current directory, and paths count from the root %q", word, root),
			Hint:    fmt.Sprintf("name it from the root: --allow-override %q", rel),
		}
	}
	return nil
}

func stands(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
