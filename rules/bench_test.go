package rules

import (
	"fmt"
	"testing"
)

func BenchmarkClassify(b *testing.B) {
	p := richPlan(b)
	for name, path := range map[string]Path{
		"nothing, deep":  root("src/github.com/some/module/internal/package/file.go"),
		"nothing, top":   root("README.md"),
		"secret":         root("services/a/.env.local"),
		"in a tree":      root(".github/workflows/ci.yml"),
		"glob":           root("certs/deep/er/server.pem"),
		"skipped":        root("web/node_modules/left-pad/index.js"),
		"git objects":    common("objects/ab/cdef0123456789"),
		"git by root":    root(".git/objects/ab/cdef0123456789"),
		"bytes, no UTF8": root("a/\xff\xfe/\xff.pem"),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Classify(path)
			}
		})
	}
}

func BenchmarkEnter(b *testing.B) {
	p := richPlan(b)
	for name, path := range map[string]Path{
		"source": root("src/github.com/some/module"), "skipped": root("web/node_modules"), "objects": common("objects"),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Enter(path)
			}
		})
	}
}

func BenchmarkPlan(b *testing.B) {
	text := "protect:\n"
	for i := range 500 {
		text += fmt.Sprintf("  - path: dir%d/sub\n  - glob: '**/*.ext%d'\n", i, i)
	}
	for b.Loop() {
		if _, err := New(Inputs{Layout: ordinary(), Config: yamlFile(text)}); err != nil {
			b.Fatal(err)
		}
	}
}
