package gitrepo

import (
	"bytes"
	"errors"
	"strings"
)

// errPushed is returned for what is no word of git's to a pre-push hook.
var errPushed = errors.New("not what git tells a pre-push hook")

// Pushed reads what git tells a pre-push hook: in each line local name and id,
// remote name and id. It returns the ids of what is sent and of what stands on
// the other side. An id of zeros is nothing, as where a branch is deleted or new.
func (r *Repo) Pushed(told []byte) (sent, there []string, err error) {
	for line := range bytes.Lines(told) {
		// The local name is as somebody spelled it: HEAD^{/the subject} has spaces.
		fields := strings.Split(strings.TrimSuffix(string(line), "\n"), " ")
		const fewest = 4
		if len(fields) < fewest {
			return nil, nil, errPushed
		}
		last := fields[len(fields)-fewest+1:]
		local, remote := last[0], last[2]
		if !r.IsID(local) || !r.IsID(remote) {
			return nil, nil, errPushed
		}
		if strings.Trim(local, "0") != "" {
			sent = append(sent, local)
		}
		if strings.Trim(remote, "0") != "" {
			there = append(there, remote)
		}
	}
	return sent, there, nil
}
