package journal

import "cage/rules"

// ForgetConfig makes the journal one whose rules do not match its entries.
func (i *Interrupted) ForgetConfig() { i.rules.inputs.Config = rules.File{} }
