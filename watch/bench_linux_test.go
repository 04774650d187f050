package watch

import (
	"fmt"
	"os"
	"testing"
)

// BenchmarkEvent measures from a write to the hint in hand, nothing else going
// on.
func BenchmarkEvent(b *testing.B) {
	s := newScene(b)
	f, err := os.OpenFile(s.abs(".env"), os.O_WRONLY, 0)
	s.must(err)
	defer f.Close()
	for b.Loop() {
		_, err := f.WriteAt([]byte("x"), 0)
		s.must(err)
		<-s.w.Ready()
		for len(s.w.Take().Paths) == 0 {
			<-s.w.Ready()
		}
	}
}

// BenchmarkBurst measures how fast events that concern nothing are read: new
// files in a watched directory.
func BenchmarkBurst(b *testing.B) {
	s := newScene(b)
	for i := 0; b.Loop(); i++ {
		f, err := os.Create(s.abs(fmt.Sprintf("src/%d", i%1000)))
		s.must(err)
		f.Close()
	}
	b.ReportMetric(float64(s.w.Status().Overflows), "overflows")
}

// BenchmarkScan walks and watches a hundred thousand directories.
func BenchmarkScan(b *testing.B) {
	s := newSceneWith(b, limits{pending: maxPending}, nil)
	for i := range 1000 {
		for j := range 100 {
			s.must(os.MkdirAll(s.abs(fmt.Sprintf("many/%d/%d", i, j)), 0o755))
		}
	}
	l := systemLimits()
	l.watches = 150_000
	for b.Loop() {
		w := open(Options{Plan: s.plan, Trees: s.trees}, l)
		scan := w.Scan()
		b.StopTimer()
		b.ReportMetric(float64(scan.Directories), "dirs")
		b.ReportMetric(float64(w.Status().WatchedDirs), "watches")
		s.must(w.Close())
		b.StartTimer()
	}
}
