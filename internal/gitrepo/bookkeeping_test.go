package gitrepo

import (
	"context"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// baseConfig is the configuration that the table changes.
const baseConfig = `[core]
	repositoryformatversion = 0
	hooksPath = one
	hooksPath = two
[remote "origin"]
	url = https://example.org/x.git
	fetch = +refs/heads/*:refs/remotes/origin/*
[remote "halfway"]
	proxy = http://proxy
[remote "helped"]
	url = hg::https://example.org/x
[branch "main"]
	remote = origin
	merge = refs/heads/main
[branch "old"]
	remote = origin
	merge = refs/heads/old
	pushRemote = fork
	mergeOptions = --no-ff
[branch "foreign"]
	remote = https://example.org/fork.git
	merge = refs/heads/x
[submodule "lib"]
	active = true
	url = https://example.org/lib.git
[alias]
	co = checkout
`

func TestBookkeeping(t *testing.T) {
	alone(t)
	repo := discover(t, initRepo(t, physicalTemp(t)))
	before := parse(t, repo, baseConfig)
	replace := func(old, with string) string {
		if !strings.Contains(baseConfig, old) {
			t.Fatalf("the base has no %q", old)
		}
		return strings.Replace(baseConfig, old, with, 1)
	}
	add := func(text string) string { return baseConfig + text }
	oldSection := "[branch \"old\"]\n\tremote = origin\n\tmerge = refs/heads/old\n\tpushRemote = fork\n\tmergeOptions = --no-ff\n"
	libSection := "[submodule \"lib\"]\n\tactive = true\n\turl = https://example.org/lib.git\n"

	for name, after := range map[string]string{
		"nothing":                        baseConfig,
		"comments and layout":            "# x\n" + strings.ReplaceAll(baseConfig, "\t", "  "),
		"new tracking branch":            add("[branch \"x\"]\nremote = origin\nmerge = refs/heads/main\n"),
		"branch that follows a local":    add("[branch \"x\"]\nremote = .\nmerge = refs/heads/main\n"),
		"branch of an unusual name":      add("[branch \"feat/a.b \\\"c\\\" \\\\d\"]\nremote = origin\nmerge = refs/heads/y\nrebase = true\n"),
		"branch in capitals":             add("[BRANCH \"x\"]\nREMOTE = origin\nMerge = refs/heads/main\n"),
		"description":                    add("[branch \"x\"]\ndescription = \"two\\nlines :: ext::sh\"\n"),
		"branch of a helped remote":      add("[branch \"x\"]\nremote = helped\nmerge = refs/heads/main\n"),
		"branch follows another":         replace("merge = refs/heads/main", "merge = refs/heads/other"),
		"upstream unset":                 replace("[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n", ""),
		"merge base of companions":       add("[branch \"main\"]\ngh-merge-base = develop\nvscode-merge-base = origin/main\n"),
		"branch deleted":                 replace(oldSection, ""),
		"branch deleted, another made":   replace(oldSection, "[branch \"x\"]\nremote = origin\nmerge = refs/heads/x\n"),
		"chosen by gh":                   add("[remote \"origin\"]\ngh-resolved = base\n"),
		"new remote":                     add("[remote \"up\"]\nurl = git@example.org:x.git\nfetch = +refs/heads/*:refs/remotes/up/*\n"),
		"new remote, first half":         add("[remote \"up\"]\nurl = ../other\n"),
		"new remote, two urls":           add("[remote \"up\"]\nurl = ssh://git@example.org:22/x\nurl = /srv/x.git\n"),
		"new remote and its branch":      add("[branch \"x\"]\nremote = up\nmerge = refs/heads/x\n[remote \"up\"]\nurl = file:///srv/x\n"),
		"new remote the old way":         add("[remote.Up]\nurl = https://example.org/y\n"),
		"submodule initialised":          add("[submodule \"vendor/a.b\"]\nactive = true\nurl = ../b.git\n"),
		"submodule moved":                replace("https://example.org/lib.git", "https://example.org/lib2.git"),
		"submodule given up":             replace(libSection, ""),
		"bookkeeping in another place":   "[branch \"x\"]\nremote = origin\n" + baseConfig,
		"foreign branch as it was":       replace("merge = refs/heads/x", "merge = refs/heads/y"),
		"two values for a branch":        add("[branch \"main\"]\nmerge = refs/heads/second\n"),
		"branch called like a key":       add("[branch \"pushRemote\"]\nremote = origin\n"),
		"one key of a branch taken away": replace("\tremote = origin\n\tmerge = refs/heads/old\n", "\tremote = origin\n"),
	} {
		if !Bookkeeping(before, parse(t, repo, after)) {
			t.Errorf("%s is refused", name)
		}
	}

	for name, after := range map[string]string{
		"hooks":                           add("[core]\nhooksPath = x\n"),
		"hooks, beside bookkeeping":       add("[branch \"x\"]\nremote = origin\n[core]\nhooksPath = x\n"),
		"order of two values":             replace("hooksPath = one\n\thooksPath = two", "hooksPath = two\n\thooksPath = one"),
		"one of two values":               replace("\thooksPath = one\n", ""),
		"value doubled":                   replace("\thooksPath = one\n", "\thooksPath = one\n\thooksPath = one\n"),
		"order of two keys":               replace("[alias]\n\tco = checkout\n", "") + "[alias]\n\tco = checkout\n[core]\n\tsshCommand = x\n",
		"alias moved to the front":        "[alias]\n\tco = checkout\n" + replace("[alias]\n\tco = checkout\n", ""),
		"alias changed":                   replace("co = checkout", "co = !sh"),
		"alias gone":                      replace("[alias]\n\tco = checkout\n", ""),
		"case of a value":                 replace("co = checkout", "co = Checkout"),
		"fsmonitor without a value":       add("[core]\nfsmonitor\n"),
		"include":                         add("[include]\npath = x\n"),
		"conditional include":             add("[includeIf \"gitdir:/\"]\npath = x\n"),
		"branch remote is a url":          add("[branch \"x\"]\nremote = https://example.org/evil\n"),
		"branch remote is a helper":       add("[branch \"x\"]\nremote = ext::sh -c x\n"),
		"branch remote is a path":         add("[branch \"x\"]\nremote = ..\n"),
		"branch remote is not configured": add("[branch \"x\"]\nremote = nobody\n"),
		"branch remote has no url":        add("[branch \"x\"]\nremote = halfway\n"),
		"branch remote in another case":   add("[branch \"x\"]\nremote = Origin\n"),
		"branch remote is empty":          add("[branch \"x\"]\nremote =\n"),
		"branch remote has no value":      add("[branch \"x\"]\nremote\n"),
		"second remote of a branch":       add("[branch \"main\"]\nremote = ext::sh\nremote = origin\n"),
		"another foreign remote":          replace("remote = https://example.org/fork.git", "remote = https://example.org/evil.git"),
		"branch merge is an option":       add("[branch \"main\"]\nmerge = --upload-pack=x\n"),
		"branch push remote":              add("[branch \"main\"]\npushRemote = origin\n"),
		"branch merge options":            add("[branch \"main\"]\nmergeOptions = --no-verify\n"),
		"part of a branch section":        replace("\tpushRemote = fork\n", ""),
		"whole but for one key":           replace("\tremote = origin\n\tmerge = refs/heads/old\n\tpushRemote = fork\n", ""),
		"branch renamed with its options": replace("[branch \"old\"]", "[branch \"new\"]"),
		"branch setting for all":          add("[branch]\nautoSetupMerge = always\nremote = origin\n"),
		"branch without a name":           add("[branch \"\"]\nremote = origin\n"),
		"url of an existing remote":       replace("https://example.org/x.git", "https://example.org/evil.git"),
		"second url of a remote":          add("[remote \"origin\"]\nurl = https://example.org/evil.git\n"),
		"push url of a remote":            add("[remote \"origin\"]\npushurl = https://example.org/evil.git\n"),
		"fetch of an existing remote":     add("[remote \"origin\"]\nfetch = +refs/heads/*:refs/heads/*\n"),
		"url of a remote half there":      add("[remote \"halfway\"]\nurl = https://example.org/x.git\n"),
		"remote gone":                     replace("[remote \"halfway\"]\n\tproxy = http://proxy\n", ""),
		"remote default":                  add("[remote]\npushDefault = origin\n"),
		"remote without a name":           add("[remote \"\"]\nurl = https://example.org/x\n"),
		"gh-resolved without a remote":    add("[remote \"nobody\"]\ngh-resolved = base\n"),
		"gh-resolved in another section":  add("[branch \"main\"]\ngh-resolved = base\n"),
		"new remote without a url":        add("[remote \"up\"]\nfetch = +refs/heads/*:refs/heads/*\n"),
		"new remote, push url":            add("[remote \"up\"]\nurl = https://example.org/x\npushurl = https://example.org/y\n"),
		"new remote, upload pack":         add("[remote \"up\"]\nurl = https://example.org/x\nuploadpack = sh\n"),
		"new remote, receive pack":        add("[remote \"up\"]\nurl = https://example.org/x\nreceivepack = sh\n"),
		"new remote, proxy":               add("[remote \"up\"]\nurl = https://example.org/x\nproxy = x\n"),
		"new remote, helper":              add("[remote \"up\"]\nurl = https://example.org/x\nvcs = x\n"),
		"new remote, mirror":              add("[remote \"up\"]\nurl = https://example.org/x\nmirror = true\n"),
		"new remote by a helper":          add("[remote \"up\"]\nurl = ext::sh -c x\n"),
		"new remote, one good url":        add("[remote \"up\"]\nurl = https://example.org/x\nurl = ext::sh -c x\n"),
		"new remote without a value":      add("[remote \"up\"]\nurl\n"),
		"new remote called like a path":   add("[remote \"../up\"]\nurl = https://example.org/x\n"),
		"new remote called like a url":    add("[remote \"https://example.org/fork.git\"]\nurl = https://example.org/evil\n"),
		"new remote called like a host":   add("[remote \"git@example.org:x\"]\nurl = https://example.org/evil\n"),
		"new remote called by a dot":      add("[remote \".\"]\nurl = https://example.org/evil\n"),
		"new remote called like a option": add("[remote \"-x\"]\nurl = https://example.org/evil\n"),
		"new remote with an odd name":     add("[remote \"a\\\" b\"]\nurl = https://example.org/evil\n"),
		"submodule by a helper":           replace("https://example.org/lib.git", "ext::sh -c x"),
		"submodule url is an option":      replace("https://example.org/lib.git", "--upload-pack=x"),
		"submodule update command":        add("[submodule \"lib\"]\nupdate = !sh\n"),
		"submodules active for all":       add("[submodule]\nactive = .\n"),
		"submodules recursed":             add("[submodule]\nrecurse = true\n"),
		"everything gone":                 "",
		"url rewritten":                   add("[url \"ext::sh\"]\ninsteadOf = https://example.org\n"),
		"subsection that looks like two":  add("[remote \"up.url\"]\nproxy = x\n"),
		"section that looks like a key":   add("[branch \"x.remote\"]\npushRemote = origin\n"),
		"extensions.worktreeConfig":       add("[extensions]\nworktreeConfig = true\n"),
	} {
		if Bookkeeping(before, parse(t, repo, after)) {
			t.Errorf("%s is taken for bookkeeping", name)
		}
	}
}

// parse is ParseConfig that must work.
func parse(t *testing.T, repo *Repo, content string) []Setting {
	t.Helper()
	settings, err := repo.ParseConfig(context.Background(), []byte(content))
	if err != nil {
		t.Fatalf("%v in %q", err, content)
	}
	return settings
}

func TestOrdinaryURL(t *testing.T) {
	for _, url := range []string{
		"https://example.org/x.git", "http://u:p@example.org/x", "ssh://git@example.org:22/~/x", "git://example.org/x", "file:///srv/x",
		"git+ssh://example.org/x", "ssh+git://example.org/x", "ftp://example.org/x", "git@example.org:x/y.git", "example.org:x",
		"/srv/x.git", "../x", "./x y", "x", "~/x", "C:/x", "a/b://c",
	} {
		if !ordinaryURL(url) {
			t.Errorf("%q is refused", url)
		}
	}
	for _, url := range []string{
		"", "-x", "--upload-pack=x", "ext::sh -c x", "fd::3", "hg::https://example.org", "a::", "::a", "ssh://[::1]/x", "https://example.org/a::b",
		"ext://sh", "EXT://sh", "HTTPS://example.org", "s3://bucket", "transport://x", "://x", " https://example.org",
		"ssh://-oProxyCommand=x/y", "ssh://u@-oProxyCommand=x/y", "ssh://-u@host/y", "https://example.org/\nx", "a\x00b", "a\x7f", "x y://z",
	} {
		if ordinaryURL(url) {
			t.Errorf("%q is taken for ordinary", url)
		}
	}
}

// TestBookkeepingOfGitItself lets git do its everyday work and judges what that
// did to the configuration.
func TestBookkeepingOfGitItself(t *testing.T) {
	alone(t)
	dir := physicalTemp(t)
	origin, lib, r := initRepo(t, dir+"/origin"), initRepo(t, dir+"/lib"), dir+"/r"
	commit(t, lib)
	git(t, origin, "submodule", "--quiet", "add", "../lib", "vendor/lib")
	commit(t, origin)
	git(t, origin, "branch", "other")
	git(t, dir, "clone", "-q", origin, r)
	repo := discover(t, r)
	read := func() []Setting {
		content, err := os.ReadFile(r + "/.git/config")
		if err != nil {
			t.Fatal(err)
		}
		return parse(t, repo, string(content))
	}
	start := read()
	for _, args := range [][]string{
		{"checkout", "-q", "-b", "x", "origin/main"},
		{"checkout", "-q", "other"},
		{"checkout", "-q", "-b", "local", "--track", "main"},
		{"branch", "--set-upstream-to=origin/main", "local"},
		{"push", "-q", "-u", "origin", "x"},
		{"branch", "-q", "-m", "x", "y"},
		{"branch", "-q", "-D", "y"},
		{"branch", "--unset-upstream", "local"},
		{"remote", "add", "fork", "../fork"},
		{"remote", "remove", "fork"},
		{"submodule", "--quiet", "update", "--init"},
		{"submodule", "--quiet", "deinit", "-f", "vendor/lib"},
		{"-c", "core.editor=echo about >", "branch", "--edit-description"},
	} {
		git(t, r, args...)
		if after := read(); !Bookkeeping(start, after) {
			t.Errorf("git %q is refused: %+v", args, after)
		}
	}
	for _, args := range [][]string{
		{"config", "core.hooksPath", "x"},
		{"config", "--unset", "core.hooksPath"},
	} {
		before := read()
		git(t, r, args...)
		if Bookkeeping(before, read()) {
			t.Errorf("git %q is taken for bookkeeping", args)
		}
	}
}

// FuzzBookkeeping says in other words what Bookkeeping may accept: the keys
// whose values differ are of a short list, no value that came names a helper,
// and what is not on the list is as it was, in its order.
func FuzzBookkeeping(f *testing.F) {
	line := func(parts ...string) string { return strings.Join(parts, "\n") }
	f.Add(line("core.a=1", "remote.o.url=u"), line("core.a=1", "remote.o.url=u", "branch.x.remote=o", "branch.x.merge=m"))
	f.Add(line("branch.x.pushremote=o", "branch.x.merge=m"), "")
	f.Add("", line("remote.n.url=https://h/x", "remote.n.fetch=f", "remote.n.gh-resolved=base"))
	f.Add(line("core.a=1", "core.a=2"), line("core.a=2", "core.a=1"))
	f.Add("", line("submodule.s.url=u", "submodule.s.active"))
	f.Add(line("branch.x.remote=o"), line("branch.x.remote=ext::o", "remote.ext::o.url=u"))
	allowed := regexp.MustCompile(`(?s)^(branch\..+\.(remote|merge|rebase|description|gh-merge-base|vscode-merge-base)` +
		`|remote\..+\.(gh-resolved|url|fetch)|submodule\..+\.(url|active))$`)
	f.Fuzz(func(t *testing.T, one, two string) {
		before, after := settingsOf(one), settingsOf(two)
		if !Bookkeeping(before, before) || !Bookkeeping(after, after) {
			t.Fatal("no difference is refused")
		}
		if !Bookkeeping(before, after) {
			return
		}
		was, is := byKey(before), byKey(after)
		differs := func(key string) bool { return !slices.Equal(was[key], is[key]) }
		all := maps.Clone(was)
		maps.Copy(all, is)
		for key := range all {
			if !differs(key) {
				continue
			}
			section := key[:strings.LastIndexByte(key, '.')+1]
			has := func(of map[string][]Setting, prefix string) bool {
				for key := range of {
					if strings.HasPrefix(key, prefix) && !strings.Contains(key[len(prefix):], ".") {
						return true
					}
				}
				return false
			}
			whole := strings.HasPrefix(key, "branch.") && strings.Count(key, ".") > 1 && !has(is, section)
			if !allowed.MatchString(key) && !whole {
				t.Fatalf("%q may not differ", key)
			}
			if strings.HasPrefix(key, "remote.") && !strings.HasSuffix(key, ".gh-resolved") && has(was, section) {
				t.Fatalf("%q is of a remote that was there", key)
			}
			for _, setting := range is[key] {
				fetches := strings.HasSuffix(key, ".url") || strings.HasPrefix(key, "branch.") && strings.HasSuffix(key, ".remote") && len(was["remote."+setting.Value+".url"]) == 0
				if setting.NoValue || strings.HasPrefix(setting.Value, "-") || fetches && strings.Contains(setting.Value, "::") {
					t.Fatalf("%q may not be %+v", key, setting)
				}
			}
		}
		rest := func(settings []Setting) []Setting {
			return slices.DeleteFunc(slices.Clone(settings), func(s Setting) bool { return differs(s.Key) })
		}
		strict := func(settings []Setting) []Setting {
			return slices.DeleteFunc(rest(settings), func(s Setting) bool { return allowed.MatchString(s.Key) })
		}
		if !slices.Equal(strict(before), strict(after)) {
			t.Fatal("what may not change is in another order")
		}
	})
}

// settingsOf makes settings of lines "key=value" or "key".
func settingsOf(text string) []Setting {
	var settings []Setting
	for entry := range strings.SplitSeq(text, "\n") {
		key, value, found := strings.Cut(entry, "=")
		settings = append(settings, Setting{Key: key, Value: value, NoValue: !found})
	}
	return settings
}

// byKey groups settings.
func byKey(settings []Setting) map[string][]Setting {
	groups := map[string][]Setting{}
	for _, setting := range settings {
		groups[setting.Key] = append(groups[setting.Key], setting)
	}
	return groups
}
