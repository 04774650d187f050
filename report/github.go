package report

import "strings"

// Annotations renders the check as workflow commands of GitHub Actions, a line
// each: errors for findings that count, notices for the others, warnings.
func (c Check) Annotations() string {
	var b strings.Builder
	for _, f := range c.sorted() {
		command := "error"
		if !f.Counts {
			command = "notice"
		}
		b.WriteString("::" + command + " file=" + commandProperty(Text(f.Bytes())) + ",title=cage " + string(f.Rule) +
			"::" + commandData(f.sentence()) + "\n")
	}
	for _, warning := range c.Warnings {
		b.WriteString("::warning title=cage::" + commandData(Text(warning)) + "\n")
	}
	return b.String()
}

// commandData escapes what would end a workflow command's message.
func commandData(text string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(text)
}

// commandProperty escapes what would end a property of a workflow command too.
func commandProperty(text string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(commandData(text))
}
