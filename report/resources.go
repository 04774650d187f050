package report

import "fmt"

// resources says what the kernel did because of limits, also where the run
// ended well.
func (s *summary) resources() {
	r := &s.d.Resources
	if r.OOMKills > 0 {
		s.line(s.paint.in(red, label("out of memory")), count(int(r.OOMKills), "process was", "processes were")+" killed by "+r.whose()+r.killed()+r.peak())
	}
	if r.TasksRefused > 0 && r.TasksMax != nil {
		s.line(label("tasks"), fmt.Sprintf("refused %s: the limit is %d processes and threads", count(int(r.TasksRefused), "time", "times"), *r.TasksMax))
	}
}

// whose names the limit that processes died by.
func (r *Resources) whose() string {
	switch {
	case r.OOMLimit != nil && *r.OOMLimit == "above" && r.OOMGroup != nil:
		return "the limit of " + Quote(*r.OOMGroup) + ", not the run's own"
	case r.OOMLimit != nil && *r.OOMLimit == "above":
		return "the machine's limit, not the run's own"
	case r.MemoryMax != nil:
		return "the run's limit of " + size(int64(*r.MemoryMax))
	default:
		return "the run's limit"
	}
}

func (r *Resources) killed() string {
	if len(r.Killed) == 0 {
		return ""
	}
	return ": " + processes(r.Killed)
}

func (r *Resources) peak() string {
	if r.MemoryPeak == nil {
		return ""
	}
	const mebibyte = 1 << 20
	return fmt.Sprintf("; the run took %.1f MiB at most", float64(*r.MemoryPeak)/mebibyte)
}
