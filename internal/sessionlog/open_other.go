//go:build !unix

package sessionlog

import "os"

// Go opens files close-on-exec or without inheritance everywhere, and
// exclusive creation follows no link.
const openFlags = os.O_WRONLY | os.O_CREATE | os.O_EXCL | os.O_APPEND
