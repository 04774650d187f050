package suggest

import "strings"

// Category says what kind of file an entry is about.
type Category string

// The categories.
const (
	Agents         Category = "agents"
	CI             Category = "ci"
	CodeOwners     Category = "code_owners"
	Containers     Category = "containers"
	GitHooks       Category = "git_hooks"
	Infrastructure Category = "infrastructure"
	Keys           Category = "keys"
	Migrations     Category = "migrations"
	Registries     Category = "package_registry"
	Tests          Category = "tests"
)

// pattern says where a category's files are. It is spelled like a line of
// .gitignore: a slash at the end stands for a directory, one at the beginning
// for a place relative to the root; without it the name counts wherever it is
// met. A name may hold one star.
type pattern struct {
	category Category
	text     string
}

// patterns are tried in this order; the first that fits counts. What a program
// writes in everyday work is not among them, such as an agent's own record of
// what it was permitted: to undo that would be a fight over nothing.
var patterns = []pattern{
	{Agents, "AGENT.md"}, {Agents, "AGENTS.md"}, {Agents, "CLAUDE.md"}, {Agents, "GEMINI.md"},
	{Agents, ".aider.conf.yml"}, {Agents, ".clinerules"}, {Agents, ".clinerules/"}, {Agents, ".cursorrules"},
	{Agents, ".mcp.json"}, {Agents, ".windsurfrules"},
	{Agents, "/.claude/agents/"}, {Agents, "/.claude/commands/"}, {Agents, "/.claude/hooks/"},
	{Agents, "/.claude/settings.json"}, {Agents, "/.claude/skills/"},
	{Agents, "/.codex/config.toml"}, {Agents, "/.cursor/mcp.json"}, {Agents, "/.cursor/rules/"},
	{Agents, "/.gemini/settings.json"}, {Agents, "/.github/copilot-instructions.md"},
	{Agents, "/.github/instructions/"}, {Agents, "/.vscode/mcp.json"}, {Agents, "/.windsurf/rules/"},
	{Agents, "/opencode.json"},

	{CI, "/.github/actions/"}, {CI, ".buildkite/"}, {CI, ".woodpecker/"}, {CI, ".drone.yml"},
	{CI, ".travis.yml"}, {CI, ".woodpecker.yml"}, {CI, "Jenkinsfile"}, {CI, "appveyor.yml"},
	{CI, "bitbucket-pipelines.yml"}, {CI, "cloudbuild.yaml"}, {CI, "cloudbuild.yml"},

	{CodeOwners, "CODEOWNERS"},

	{Containers, "Containerfile"}, {Containers, "Dockerfile"}, {Containers, "Dockerfile.*"},
	{Containers, "compose.yaml"}, {Containers, "compose.yml"},
	{Containers, "docker-compose.yaml"}, {Containers, "docker-compose.yml"},
	{Containers, "docker-compose.*.yaml"}, {Containers, "docker-compose.*.yml"},

	{GitHooks, ".githooks/"}, {GitHooks, ".husky/"}, {GitHooks, ".lefthook.yml"}, {GitHooks, ".pre-commit-config.yaml"},
	{GitHooks, "lefthook.yaml"}, {GitHooks, "lefthook.yml"},

	{Infrastructure, "ansible/"}, {Infrastructure, "helm/"}, {Infrastructure, "infra/"}, {Infrastructure, "k8s/"},
	{Infrastructure, "kubernetes/"}, {Infrastructure, "terraform/"}, {Infrastructure, "*.tf"}, {Infrastructure, "*.tfvars"},
	{Infrastructure, "Chart.yaml"}, {Infrastructure, "Pulumi.yaml"}, {Infrastructure, "serverless.yml"},

	{Keys, "*.jks"}, {Keys, "*.key"}, {Keys, "*.keystore"}, {Keys, "*.p12"}, {Keys, "*.pem"}, {Keys, "*.pfx"},
	{Keys, "id_ecdsa"}, {Keys, "id_ed25519"}, {Keys, "id_rsa"},

	{Migrations, "/db/migrate/"}, {Migrations, "alembic/"}, {Migrations, "migrations/"},

	{Registries, ".gemrc"}, {Registries, ".npmrc"}, {Registries, ".pypirc"}, {Registries, ".yarnrc.yml"},
	{Registries, "pip.conf"},

	{Tests, "__tests__/"}, {Tests, "e2e/"}, {Tests, "spec/"}, {Tests, "test/"}, {Tests, "testdata/"}, {Tests, "tests/"},
	{Tests, "*.spec.js"}, {Tests, "*.spec.jsx"}, {Tests, "*.spec.ts"}, {Tests, "*.spec.tsx"},
	{Tests, "*.test.js"}, {Tests, "*.test.jsx"}, {Tests, "*.test.ts"}, {Tests, "*.test.tsx"},
	{Tests, "*_spec.rb"}, {Tests, "*_test.go"}, {Tests, "*_test.py"}, {Tests, "test_*.py"},
}

// reason says why the files of a category are worth protecting.
func (c Category) reason() string {
	switch c {
	case Agents:
		return "what coding agents take as their orders, and what they may start"
	case CI:
		return "runs with the secrets of the CI"
	case CodeOwners:
		return "decides whose approval a change needs"
	case Containers:
		return "decides what goes into images, and with which rights they run"
	case GitHooks:
		return "decides what runs at a commit or a push"
	case Infrastructure:
		return "is applied to machines and accounts that are real"
	case Keys:
		return "what signs, decrypts and logs in"
	case Migrations:
		return "changes a database when it is run"
	case Registries:
		return "decides where packages come from, and may hold tokens"
	default:
		return "so that no test is weakened until it passes; leave it out where the agent is to write tests"
	}
}

// skips reports whether the walk stays out of directories called name, beyond
// those that rules stay out of: what is in them is made, or somebody else's.
func skips(name string) bool {
	switch name {
	case "build", "dist", "target", "vendor":
		return true
	}
	return false
}

// directory reports whether the pattern is about directories.
func (p pattern) directory() bool { return strings.HasSuffix(p.text, "/") }

// open reports whether the pattern is about names that it does not know whole.
func (p pattern) open() bool { return strings.Contains(p.text, "*") }

// fits reports whether the pattern is about the entry at rel.
func (p pattern) fits(rel, name string, isDirectory bool) bool {
	if p.directory() != isDirectory {
		return false
	}
	text := strings.TrimSuffix(p.text, "/")
	if place, ok := strings.CutPrefix(text, "/"); ok {
		return rel == place
	}
	before, after, open := strings.Cut(text, "*")
	if !open {
		return name == text
	}
	return len(name) > len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after)
}

// glob returns the pattern as `.cage.yaml` spells it.
func (p pattern) glob() string {
	if p.directory() {
		return "**/" + p.text + "**"
	}
	return "**/" + p.text
}
