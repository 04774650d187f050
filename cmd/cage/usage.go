package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError is a call that cannot be understood: nothing runs.
type usageError struct{ error }

func usage(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// given counts the orders that were given.
func given(orders ...bool) int {
	n := 0
	for _, order := range orders {
		if order {
			n++
		}
	}
	return n
}

// flagError says in one line which flag is wrong and what it takes.
func flagError(c *cobra.Command, err error) error {
	return usage("%s; see %s --help", flagFault(err), c.CommandPath())
}

func flagFault(err error) string {
	var (
		unknown *pflag.NotExistError
		missing *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
		syntax  *pflag.InvalidSyntaxError
	)
	switch {
	case errors.As(err, &unknown):
		return "unknown flag " + dashed(unknown)
	case errors.As(err, &missing):
		return "--" + missing.GetFlag().Name + " takes " + takes(missing.GetFlag())
	case errors.As(err, &invalid):
		flag, what := invalid.GetFlag(), invalid.Unwrap().Error()
		if _, ours := flag.Value.(value); !ours {
			what = takes(flag)
		}
		return "--" + flag.Name + " takes " + what + ", not " + strconv.Quote(invalid.GetValue())
	case errors.As(err, &syntax):
		return strconv.Quote(syntax.GetSpecifiedFlag()) + " is no flag"
	default:
		return err.Error()
	}
}

// dashed spells a flag that is not there as it was given.
func dashed(unknown *pflag.NotExistError) string {
	name := "--" + unknown.GetSpecifiedName()
	if unknown.GetSpecifiedShortnames() != "" {
		name = name[1:]
	}
	quoted := strconv.Quote(name)
	if quoted[1:len(quoted)-1] == name {
		return name
	}
	return quoted
}

// takes says what a flag takes. All but the switches have values of our own.
func takes(flag *pflag.Flag) string {
	if v, ok := flag.Value.(value); ok {
		return v.takes()
	}
	return "nothing, true or false"
}
