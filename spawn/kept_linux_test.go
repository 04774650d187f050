package spawn

import (
	"encoding/gob"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"cage/internal/proc"
)

// A keeper that is at work may take its time; one that says nothing is stuck.
func TestOrderIsWaitedFor(t *testing.T) {
	r := newReaper(t)
	for _, tt := range []struct {
		name    string
		working bool
		want    error
	}{
		{"a keeper at work", true, nil},
		{"a silent keeper", false, errKeeperLost},
	} {
		t.Run(tt.name, func(t *testing.T) {
			process, err := r.Attend(proc.Spec{Path: "/bin/sleep", Args: []string{"sleep", "1000"}})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				itsOrders, orders := io.Pipe()
				notices, itsNotices := io.Pipe()
				k := &kept{
					keeper: process, orders: newSender(orders), waiting: make(map[uint64]chan<- notice),
					exited: make(chan proc.Exit, 1), lost: make(chan struct{}),
				}
				k.leaving.Store(true) // nobody is to be killed where the talk ends
				go k.listen(gob.NewDecoder(notices))
				go func() {
					defer close(k.lost)
					defer itsNotices.Close()
					var o order
					if err := gob.NewDecoder(itsOrders).Decode(&o); err != nil {
						t.Error(err)
					}
					says := newSender(itsNotices)
					for range 3600 {
						time.Sleep(time.Second)
						if tt.working {
							_ = says.send(notice{Event: working})
						}
					}
					if tt.working {
						_ = says.send(notice{Event: answered, Number: o.Number, Count: 7})
						synctest.Wait()
					}
				}()
				began := time.Now()
				answer, err := k.ask(order{Verb: kill, Patience: time.Second})
				if !errors.Is(err, tt.want) || (err == nil) != (answer.Count == 7) {
					t.Errorf("after %s: %+v, %v", time.Since(began), answer, err)
				}
				<-k.lost
			})
			if tt.working {
				if err := process.Kill(); err != nil {
					t.Errorf("the keeper: %v", err)
				}
			}
			select {
			case <-process.Exited():
			case <-time.After(patience):
				t.Error("it was not killed")
			}
		})
	}
}
