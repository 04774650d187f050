package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The flag values say what they take, since a person reads it when a call is
// refused.

// digits reads a whole number, 0 or more, written with digits alone.
func digits(text string, bits int) (int64, error) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, errors.New("takes a whole number, 0 or more")
	}
	n, err := strconv.ParseInt(text, 10, bits)
	if err != nil {
		return 0, errors.New("takes a smaller number")
	}
	return n, nil
}

// count is a whole number.
type count int64

func (c *count) String() string { return strconv.FormatInt(int64(*c), 10) }
func (c *count) Type() string   { return "n" }
func (c *count) Set(text string) error {
	n, err := digits(text, 63)
	if err == nil {
		*c = count(n)
	}
	return err
}

// optionalCount is a whole number that may not be given.
type optionalCount struct{ value *int }

func (c *optionalCount) String() string { return "" }
func (c *optionalCount) Type() string   { return "n" }
func (c *optionalCount) Set(text string) error {
	n, err := digits(text, 31)
	if err == nil {
		value := int(n)
		c.value = &value
	}
	return err
}

// positiveDuration is a duration above zero.
type positiveDuration time.Duration

func (d *positiveDuration) String() string { return time.Duration(*d).String() }
func (d *positiveDuration) Type() string   { return "duration" }
func (d *positiveDuration) Set(text string) error {
	value, err := time.ParseDuration(text)
	if err != nil || value <= 0 {
		return errors.New("takes a duration above 0, such as 500ms or 2s")
	}
	*d = positiveDuration(value)
	return nil
}

// milliseconds sets a positiveDuration in milliseconds.
type milliseconds positiveDuration

func (m *milliseconds) String() string {
	return strconv.FormatInt(time.Duration(*m).Milliseconds(), 10)
}
func (m *milliseconds) Type() string { return "n" }
func (m *milliseconds) Set(text string) error {
	n, err := digits(text, 32)
	if err != nil || n == 0 {
		return errors.New("takes a whole number of milliseconds above 0")
	}
	*m = milliseconds(time.Duration(n) * time.Millisecond)
	return nil
}

// nonNegativeDuration is a duration of zero or more.
type nonNegativeDuration time.Duration

func (d *nonNegativeDuration) String() string { return time.Duration(*d).String() }
func (d *nonNegativeDuration) Type() string   { return "duration" }
func (d *nonNegativeDuration) Set(text string) error {
	value, err := time.ParseDuration(text)
	if err != nil || value < 0 {
		return errors.New("takes a duration of 0 or more, such as 500ms or 2s")
	}
	*d = nonNegativeDuration(value)
	return nil
}

// choice is one word of a few.
type choice struct {
	value   string
	allowed []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return strings.Join(c.allowed, "|") }
func (c *choice) Set(text string) error {
	if !slices.Contains(c.allowed, text) {
		return errors.New("takes " + strings.Join(c.allowed, " or "))
	}
	c.value = text
	return nil
}
