package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// sample is a set of values of one unit.
type sample []float64

func (s sample) sorted() sample { return slices.Sorted(slices.Values(s)) }

// at returns the value below which a share of the sample lies.
func (s sample) at(share float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := s.sorted()
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

func (s sample) median() float64 { return s.at(0.5) }

// figure is one line of the table.
type figure struct {
	name string
	unit unit
	// cage, floor and polling are what the contenders took; floor and polling
	// are empty where there is no such thing.
	cage, floor, polling sample
	// share is that of the samples below what is told of each contender; the half
	// where it is 0.
	share float64
	// value is what is held against the goal; what is told of the cage where it is
	// nil.
	value func() float64
	// goal is the most that the value may be, atLeast the least; 0 where none
	// was set.
	goal, atLeast float64
	// goalUnit writes value and goal where those have another unit.
	goalUnit unit
}

func (f figure) measured() float64 {
	if f.value != nil {
		return f.value()
	}
	return f.told(f.cage)
}

// told is what is told of a contender.
func (f figure) told(s sample) float64 {
	if f.share > 0 {
		return s.at(f.share)
	}
	return s.median()
}

func (f figure) verdict() string {
	switch {
	case f.goal == 0 && f.atLeast == 0:
		return "–"
	case f.goal > 0 && f.measured() <= f.goal, f.atLeast > 0 && f.measured() >= f.atLeast:
		return "yes"
	default:
		return "**no**"
	}
}

// unit writes a value.
type unit func(float64) string

func milliseconds(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.3f ms", v)
	case v < 100:
		return fmt.Sprintf("%.1f ms", v)
	default:
		return fmt.Sprintf("%.0f ms", v)
	}
}

func megabytes(v float64) string { return fmt.Sprintf("%.1f MB", v/1e6) }

func percent(v float64) string { return fmt.Sprintf("%.2f %%", v) }

func times(v float64) string { return fmt.Sprintf("%.0f ×", v) }

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// spread writes a sample: what is told of it, and where most of it lies.
func (f figure) spread(s sample) string {
	switch len(s) {
	case 0:
		return "–"
	case 1:
		return f.unit(s[0])
	}
	return fmt.Sprintf("%s (%s … %s)", f.unit(f.told(s)), f.unit(s.at(0.1)), f.unit(s.at(0.9)))
}

func (f figure) limit() string {
	switch {
	case f.atLeast > 0:
		return "≥ " + f.compared(f.atLeast)
	case f.goal > 0:
		return "≤ " + f.compared(f.goal)
	default:
		return "–"
	}
}

func (f figure) compared(v float64) string {
	if f.goalUnit != nil {
		return f.goalUnit(v)
	}
	return f.unit(v)
}

func printTable(w io.Writer, figures []figure) {
	rows := [][]string{{"figure", "cage", "held against the goal", "goal", "met", "floor", "1000 ms polling loop"}}
	for _, f := range figures {
		rows = append(rows, []string{
			f.name, f.spread(f.cage), f.compared(f.measured()), f.limit(), f.verdict(), f.spread(f.floor), f.spread(f.polling),
		})
	}
	fmt.Fprintln(w)
	for i, row := range rows {
		fmt.Fprintln(w, "| "+strings.Join(row, " | ")+" |")
		if i == 0 {
			fmt.Fprintln(w, strings.Repeat("| --- ", len(row))+"|")
		}
	}
	fmt.Fprintln(w, "\nMedian, or p99 in the rows of that (first … last tenth). The rows of one measurement share its samples.")
}
