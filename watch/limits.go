package watch

// maxPending is how many paths wait before they collapse into a rescan: ten
// times the files that a session protects by default.
const maxPending = 50_000

// limits bound what the watcher takes, with the words for reaching them.
type limits struct {
	// watches is how many it sets before it keeps to the directories that
	// targets lie in.
	watches int
	// pending is how many hints or chores wait before they collapse into "look
	// at everything".
	pending int
	// beyond, exhausted and refused say what it means that the bound was
	// reached, that a watch was refused, and that an instance was.
	beyond, exhausted, refused Lack
}
