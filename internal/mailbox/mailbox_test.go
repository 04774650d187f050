package mailbox

import (
	"slices"
	"testing"
)

// Whoever waits for Ready before every Take gets everything, in order.
func TestBox(t *testing.T) {
	const count = 10_000
	b := New[int]()
	go func() {
		for i := range count {
			b.Put(i)
		}
	}()
	var got []int
	for len(got) < count {
		<-b.Ready()
		got = append(got, b.Take()...)
	}
	want := make([]int, count)
	for i := range want {
		want[i] = i
	}
	if !slices.Equal(got, want) {
		t.Error("something is missing or out of order")
	}
	if more := b.Take(); len(more) > 0 {
		t.Errorf("%d too many", len(more))
	}
}
