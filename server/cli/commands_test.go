package cli_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"weir/server/cli"
)

// withoutCommand are the operations of the management API that no command makes, each with
// the reason.
var withoutCommand = map[string]string{
	"POST /api/session":                    "sessions are the dashboard's: a command has the token or key itself",
	"GET /api/session":                     "as above",
	"DELETE /api/session":                  "as above",
	"POST /api/oauth/{provider}/authorize": "the provider sends the browser back with the dashboard's cookie",
	"GET /oauth/callback":                  "as above",
	"GET /oidc/callback":                   "a browser comes back to it",
	"POST /api/sign-in/{id}":               "a browser begins it",
	"POST /api/sign-in/passkey":            "as above",
	"POST /api/session/passkey":            "a browser has the passkeys",
	"GET /api/passkeys":                    "of a person's session alone, which a command has not",
	"POST /api/passkeys":                   "as above",
	"POST /api/passkeys/challenge":         "as above",
	"PUT /api/passkeys/{id}":               "as above",
	"DELETE /api/passkeys/{id}":            "as above",
	"GET /api/auth":                        "the page of the sign-in asks for it",
	"POST /api/token":                      "weir login --ci makes it",
	"POST /setup/claim":                    "a set-up script calls it",
	"POST /api/device":                     "weir login makes it: TestLoginByDeviceCode",
	"POST /api/device/token":               "as above",
	"GET /api/device/{code}":               "a person approves in the dashboard",
	"POST /api/device/{code}":              "as above",
	"GET /setup/{file}":                    "the command that weir setup prints downloads it",
	"POST /api/oauth/{provider}/cancel":    "Ctrl-C of accounts sign-in makes it: TestCtrlCCancelsASignIn",
}

// step is a command of a test: its arguments, its input, the exit code and texts that the
// outputs have.
type step struct {
	line, stdin string
	later       bool // what it shows is recorded some seconds after a call
	code        int
	want        string // in the standard output, or in the other for a failure
}

// steps run every command, in an order in which each finds what it needs.
var steps = []step{
	{line: "machines", want: "main"},
	{line: "machines ls --json", want: `"object":"list"`},
	{line: "machines add second", want: "sk-"},
	{line: "machines add moved --id 0123456789abcdef", want: "sk-0123456789abcdef-"},
	{line: "machines add moved --id 0123456789abcdef", code: 1, want: "machine_exists"},
	{line: "machines rm moved --yes"},
	{line: "keys", code: 2, want: "name one with --machine"},
	{line: "machines rename second third"},
	{line: "machines", want: "third"},
	{line: "machines rename third second --json", want: `"name":"second"`},
	{line: "machines rm second", code: 2, want: "--yes confirms"},
	{line: "machines rm second --yes"},
	{line: "machines ls --deleted", want: "RESTORE UNTIL"},
	{line: "machines restore DELETED"},
	{line: "machines", want: "second"},
	{line: "machines rm second --now --yes"},
	{line: "doctor", code: 1, want: "weir: not everything works"},
	{line: "accounts providers", want: "llama.cpp"},
	{line: "accounts add openai-compatible --name local --base-url UPSTREAM/v1 --prefix local --api-key env:API_KEY", want: "ok, local/echo "},
	{line: "accounts add openai-compatible --name spare --base-url UPSTREAM/v1 --prefix spare --api-key - --no-test", stdin: "sk-from-stdin\n"},
	{line: "accounts add openai-compatible --name open --base-url UPSTREAM/v1 --prefix open --no-test", want: "The account open ("},
	{line: "accounts test open", want: "ok, "},
	{line: "call open/echo Hello", want: "You said: Hello"},
	{line: "accounts rotate open", stdin: "any text", want: "ok, "},
	{line: "accounts add openai-compatible --prefix fresh", code: 1, want: "weir: --base-url is required for this provider"},
	{line: "accounts add openai-compatible --name OPEN --base-url UPSTREAM/v1", code: 1, want: "an account is called open already; choose another --name"},
	{line: "accounts rm open --yes", want: "The account open is deleted."},
	{line: "accounts add VLLM --base-url UPSTREAM/v1 --no-test", want: "The account vLLM ("},
	{line: "accounts add vllm --base-url UPSTREAM/v1", want: "ok, vllm-2/echo "},
	{line: "accounts show vllm-2", want: "vLLM-2"},
	{line: "accounts rm vllm-2 --yes"},
	{line: "accounts rm vllm --yes"},
	{line: "accounts add openai --api-key sk-literal", code: 2, want: "others could read"},
	{line: "accounts add openai --api-key env:MISSING", code: 1, want: "MISSING is not set"},
	{line: "accounts add openai", code: 1, want: "it is empty"},
	{line: "accounts add nowhere", code: 1, want: "nowhere"},
	{line: "accounts add bedrock", code: 2, want: "--access-key-id"},
	{line: "accounts add vertex", code: 2, want: "--service-account"},
	{line: "accounts", want: "spare"},
	{line: "accounts ls --json", want: `"object":"list"`},
	{line: "accounts show spare", want: "  OpenAI-compatible\nName "},
	{line: "accounts test LOCAL", want: "ok, "},
	{line: "accounts set spare --priority 7 --var streamUsage=none", code: 1, want: "streamUsage"},
	{line: "accounts set spare --priority 7"},
	{line: "accounts set spare", code: 2, want: "name a field"},
	{line: "accounts set spare --priority high", code: 2, want: "must be a number"},
	{line: "accounts pause spare", want: "is paused."},
	{line: "accounts resume spare"},
	{line: "accounts rotate spare", stdin: "sk-second", want: "ok, "},
	{line: "accounts rotate spare --api-key env:API_KEY", want: "ok, "},
	{line: "accounts models local", want: "echo"},
	{line: "accounts quota", want: "LEFT"},
	{line: "accounts sign-in openai", code: 1, want: "weir: "},
	{line: "accounts sign-in ACME --name Acme"},
	{line: "models", want: "local/echo"},
	{line: "models ls --kind embedding", want: "MODEL"},
	{line: "models show local/echo", want: "local/echo"},
	{line: "models add local later --name Later --context 1000", want: ""},
	{line: "models custom", want: "later"},
	{line: "models rm local later", code: 2, want: "--yes confirms"},
	{line: "models rm local later --yes", want: "The model local/later is deleted."},
	{line: "models alias fast local/echo", want: "The alias fast is stored."},
	{line: "models aliases", want: "fast"},
	{line: "models unalias fast", code: 2, want: "--yes confirms"},
	{line: "models unalias fast --yes"},
	{line: "models disable local echo other"},
	{line: "models disabled", want: "echo,other"},
	{line: "models enable local other", want: "The models of local are enabled."},
	{line: "models enable local"},
	{line: "models unavailable", want: "REASON"},
	{line: "combos add team local/echo spare/echo --strategy weighted --weights local/echo=3,spare/echo=1"},
	{line: "combos", want: "weighted"},
	{line: "combos ls", want: "local/echo,spare/echo"},
	{line: "combos show team", want: "weighted"},
	{line: "combos set team --models local/echo --strategy none --weights none"},
	{line: "combos set team --models local/echo,team", code: 1, want: "weir: --models: The combo team leads back to itself"},
	{line: "combos rm team --yes", want: "The combo team is deleted."},
	{line: "keys add laptop --rpm 60 --models local/* --expires 30d --budget 20/month", want: "sk-"},
	{line: "keys add laptop --budget lots", code: 2, want: "AMOUNT/WINDOW"},
	{line: "keys add laptop --expires soon", code: 2, want: "30d"},
	{line: "keys add Laptop --scopes data", code: 1, want: "a key is called laptop already; choose another NAME"},
	{line: "keys pause lptop", code: 1, want: "did you mean laptop? weir keys lists them"},
	{line: "keys ls --json", want: `"rpm":60`},
	{line: "keys add carol --scopes data,manage", want: "sk-"},
	{line: "keys show carol", want: "data, manage"},
	{line: "keys set carol --rpm 5 --models local/*"},
	{line: "keys set carol --rpm none"},
	{line: "keys set carol --rpm 0", code: 2, want: "--rpm 0: it must be greater than 0; none removes the limit"},
	{line: "keys rotate carol --overlap 0s", want: "sk-"},
	{line: "keys rotate carol", want: "sk-"},
	{line: "keys pause carol", want: ") is paused."},
	{line: "keys", want: "paused"},
	{line: "keys resume carol", want: ") is resumed."},
	{line: "keys usage carol --month 2026-11", want: "total"},
	{line: "budgets add all 100/month", want: ""},
	{line: "budgets add all 100", code: 2, want: "LIMIT 100: write"},
	{line: "budgets add all 5/dy", code: 2, want: "LIMIT 5/dy: the window dy: did you mean day? It takes minute, 5h, day, week, month or total\n"},
	{line: "budgets add all 5token/day", code: 2, want: "did you mean tokens? It takes usd, tokens or requests\n"},
	{line: "budgets add all 0/day", code: 2, want: "LIMIT 0/day: the amount must be a number greater than 0\n"},
	{line: "budgets add all -5/day", code: 2, want: "LIMIT -5/day: the amount must be a number greater than 0;"},
	{line: "budgets add all 9999999/day", code: 1, want: "weir: LIMIT must be a number of US dollars"},
	{line: "models add lcal new", code: 1, want: "weir: PREFIX names no provider or prefix of this machine: lcal; did you mean local?"},
	{line: "models disable lcal echo", code: 2, want: "weir: PREFIX lcal: did you mean local? weir models lists"},
	{line: "accounts set spare --prefix local", code: 1, want: "Models named local/… are those of the account \"local\". Give this account another prefix, or"},
	{line: "accounts set spare --prefix spare"},
	{line: "accounts add openai-compatible --prefix local --base-url UPSTREAM/v1", code: 1, want: "weir: --prefix: Models named local/… are those of the account"},
	{line: "accounts set spare --name local", code: 1, want: "an account is called local already"},
	{line: "accounts set spare --var regin=x", code: 1, want: "weir: --var regin is not a field that can be set here; did you mean region?"},
	{line: "budgets add carols 500000tokens/day --key carol --models local/*"},
	{line: "budgets", want: "500000"},
	{line: "budgets ls", want: "carol, local/*\n"},
	{line: "budgets ls", want: "all requests\n"},
	{line: "budgets show carols", want: "\nKey       carol\n"},
	{line: "budgets show all", want: "usd"},
	{line: "budgets set all --limit 200"},
	{line: "budgets rm all --yes"},
	{line: "people invite Bob --role viewer --budget 5/month", code: 1, want: "template"},
	{line: "people invite Bob --budget 5requests/day", code: 2, want: "--budget"},
	{line: "people invite Bob --role viewer", want: "/#/invitation/wi_"},
	{line: "people invitations", want: "Bob"},
	{line: "people withdraw INVITATION", want: " is withdrawn."},
	{line: "people link ADA", want: "/#/invitation/wi_"},
	{line: "people", want: "Ada"},
	{line: "people ls", want: "$20.00"},
	{line: "people set Ada --role member --budget 10/day --models local/*", want: " is changed."},
	{line: "people ls --json", want: `"budgetWindow":"day"`},
	{line: "usage --by person", want: "PERSON"},
	{line: "people end-sessions Nobody", code: 1, want: "Nobody"},
	{line: "people end-sessions Ada", want: "The sessions of Ada have ended."},
	{line: "people rm Ada", code: 2, want: "Remove the person Ada? Sessions end and keys are paused at once. --yes confirms"},
	{line: "people rm Ada --yes", want: "Ada is removed: sessions have ended, keys are paused."},
	{line: "destinations kinds", want: "slack"},
	{line: "destinations add webhook hook --secret url=env:HOOK"},
	{line: "destinations", want: "hook"},
	{line: "destinations ls", want: "webhook"},
	{line: "destinations show hook", want: "webhook"},
	{line: "destinations set hook --name bell"},
	{line: "destinations add webhook other --secret url=https://example.com/secret", code: 2, want: "others could read"},
	{line: "destinations test bell", want: "The test was delivered."},
	{line: "destinations deliveries bell", want: "TRIES"},
	{line: "destinations pause bell"},
	{line: "destinations resume bell"},
	{line: "destinations rm bell --yes"},
	{line: "destinations add webhook lost --secret url=env:LOST"},
	{line: "destinations test lost", code: 1, want: "the test was not delivered: not reachable"},
	{line: "doctor", want: "destination lost fails: not reachable"},
	{line: "destinations set lost --secret url=env:HOOK"}, // as docs/security.md replaces it
	{line: "destinations test lost", want: "The test was delivered."},
	{line: "destinations rm lost --yes"},
	{line: "identity-providers add Acme ISSUER weir --secret env:API_KEY --rules editor:groups=ai", want: ""},
	{line: "identity-providers set Acme", code: 2, want: "name a field"},
	{line: "identity-providers set Acme --client other", code: 2, want: "--secret"},
	{line: "identity-providers set Acme --secret env:API_KEY"},
	{line: "identity-providers set Acme --client other --secret env:API_KEY --rules viewer:groups=all"},
	{line: "identity-providers set Acme --name Renamed --scopes email,groups"},
	{line: "identity-providers ls --json", want: `"name":"Renamed","issuer":"ISSUER","clientId":"other","hasSecret":true,"scopes":["email","groups"],"rules":[{"claim":["groups"],"value":"all"`},
	{line: "identity-providers set Renamed --name Acme"},
	{line: "identity-providers add Acme ISSUER weir --rules ai", code: 2, want: "ROLE:CLAIM=VALUE"},
	{line: "identity-providers add Acme ISSUER/other weir", code: 1, want: "issuer_status"},
	{line: "identity-providers add Acme ISSUER weir --rules [{\"claim\":[\"a\",\"b\"],\"value\":\"c\",\"role\":\"viewer\",\"machines\":[\"*\"]}]", want: ""},
	{line: "identity-providers add Passkeys passkey passkey --kind passkey", code: 1, want: "Passkeys work at https://NAME"},
	{line: "identity-providers", want: "ISSUER"},
	{line: "identity-providers ls --json", want: `"hasSecret":true`},
	{line: "identity-providers test Acme", code: 2, want: "several have the name"},
	{line: "identity-providers test IDP", want: "The provider can be used."},
	{line: "identity-providers rm IDP --yes"},
	{line: "identity-providers end-sessions --yes", want: "The sessions of all people have ended."},
	{line: "identity-providers sign-ins", want: "Operator  Ended the sessions of"},
	{line: "identity-providers sign-ins", want: "Operator  Created machine               main\n"},
	{line: "identity-providers sign-ins -n 1 --json", want: `},"next":`},
	{line: "identity-providers sign-ins -n 101", code: 2, want: "-n, --limit 101: it must be an integer from 1 to 100"},
	{line: "settings", want: "strategy"},
	{line: "settings ls --json", want: `"strategy"`},
	{line: "settings set timeZone=Europe/Berlin idleSeconds=60 capturePercent=100"},
	{line: "settings set strategy=weigted", code: 2, want: "weir: strategy weigted: did you mean weighted? It takes priority, "},
	{line: "settings set nonsense=1", code: 1, want: "nonsense is not a setting; the fields here are "},
	{line: "settings set nonsense", code: 2, want: "write NAME=VALUE"},
	{line: "settings set nonsense=", code: 1, want: "nonsense is not a setting"},
	{line: "settings set capturePercen=1", code: 1, want: "capturePercen is not a setting; did you mean capturePercent?"},
	{line: "settings set capturePercent=200", code: 1, want: "weir: capturePercent must be "},
	{line: "settings set claudeOpusModel=openai/gpt-4o-min", code: 1, want: "(--allow-unknown saves it anyway)"},
	{line: "settings set claudeOpusModel=openai/gpt-4o-min --allow-unknown"},
	{line: "settings set claudeOpusModel="},
	{line: `settings set traceUpstream=["vllm.example.com:8000"]`},
	{line: "settings --json", want: `"traceUpstream":["vllm.example.com:8000"]`},
	{line: "settings set idleSeconds=", want: "The settings are changed."},
	{line: "explain local/echo --key carol", want: "local"},
	{line: "explain local/echo --key carol --max-tokens 9", want: "local"},
	{line: "call local/echo Hello", want: "You said: Hello\n"},
	{line: "call local/echo --key file:KEYFILE", stdin: "from stdin", want: "You said: from stdin"},
	{line: "call local/echo Hello --json --system Short", want: `"chat.completion"`},
	{line: "call local/bad Hello", code: 1, want: "broken"},
	{line: "call openai/gpt-5 Hello", code: 1, want: "weir accounts add PROVIDER connects one, or choose another model."},
	{line: "call local/echo Hello --key env:MISSING", code: 1, want: "MISSING"},
	{line: "call nowhere/echo Hello", code: 1, want: "model_not_found"},
	{line: "usage", later: true, want: "\nunknown model  "},
	{line: "requests", later: true, want: "  failed  "},
	{line: "usage --by key,model --month MONTH", want: "total"},
	{line: "usage --by endpoint,model", want: "\ntotal                                "},
	{line: "usage --by account", later: true, want: "open (deleted)"},
	{line: "usage --by account --csv", want: "connection"},
	{line: "usage --by kee", code: 2, want: "weir: --by kee: did you mean key? It takes key, person, account, model, provider, endpoint, tool, tag:NAME, month, day or hour\n"},
	{line: "usage --month 2026-13", code: 2, want: "--month"},
	{line: "usage --from garbage", code: 2, want: "--from garbage: write a day such as 2026-11-01\n"},
	{line: "usage --to 2026-11-30T10", code: 2, want: "--to 2026-11-30T10: write a day"},
	{line: "usage --by hour,model --from 2026-11-01", code: 2, want: "--from 2026-11-01: write an hour such as 2026-11-01T19"},
	{line: "requests -n abc", code: 2, want: "-n, --limit abc: it must be an integer from 1 to 200"},
	{line: "requests -n 500", code: 2, want: "-n, --limit 500: it must be an integer from 1 to 200"},
	{line: "usage --by day --from 2026-11-01", want: "DAY"},
	{line: "requests", want: "succeeded"},
	{line: "requests ls --failed --account local --status error --from 1h", want: "  failed  "},
	{line: "requests --key carol", want: "MODEL"},
	{line: "requests --csv", want: "requested_model"},
	{line: "requests show REQUEST", want: "Answered by local.\n\nRequest   req_"},
	{line: "requests show --failed --account local", want: "Failed: local had an error.\n"},
	{line: "requests show --model local/echo --json", want: `"asked":"local/echo"`},
	{line: "requests show --tag nowhere", code: 1, want: "no such request is listed; weir requests lists all"},
	{line: "requests show REQUEST --failed", code: 2, want: "name an ID, or flags"},
	{line: "requests show nothing", code: 1, want: "No request with this id is listed. weir requests lists them. (request_not_found)"},
	{line: "accounts timeline", later: true, want: "server error 1"},
	{line: "accounts timeline --by account,model", want: "local"},
	{line: "accounts outages", want: "PROVIDER"},
	{line: "usage --by tool", want: "TOOL"},
	{line: "usage --by tag:team,month", want: "TEAM"},
	{line: "keys networks carol", want: "NETWORK"},
	{line: "captures ls", later: true, want: "req_"},
	{line: "captures", want: "BYTES"},
	{line: "captures show CAPTURE", want: "You said: "},
	{line: "captures rm CAPTURE --yes"},
	{line: "captures clear --yes", want: "All stored prompts and answers are deleted."},
	{line: "audit -n 5 --verify", want: "Operator"},
	{line: "audit", want: "Deleted stored prompts and answers"},
	{line: "setup", want: "codex"},
	{line: "setup codex", code: 1, want: "weir: --model is required: this machine has no default model. Name one of weir models: weir setup codex --model MODEL"},
	{line: "setup codx", code: 1, want: "no tool is called \"codx\"; did you mean codex? weir setup lists them\n"},
	{line: "setup codex --model nonsense", code: 1, want: "weir: --model names no combo, alias or model: nonsense (--allow-unknown saves it anyway)"},
	{line: "setup codex --model nonsense --allow-unknown", want: "/setup/codex.sh"},
	{line: "setup codex --model local/echo", want: "/setup/codex.sh"},
	{line: "setup curl --model local/echo", want: `/v1/chat/completions' \
  -H 'Authorization: Bearer sk-`},
	{line: "setup curl", want: "Authorization: Bearer YOUR_KEY"},
	{line: "setup cursor", want: "/v1\nModel: local/"},
	{line: "setup claude", code: 1, want: "did you mean claude-code? "},
	{line: "export", want: `"format"`},
	{line: "export FOLDER/plain.json"},
	{line: "export FOLDER/plain.json", code: 1, want: "--force"},
	{line: "export FOLDER/plain.json --force"},
	{line: "export FOLDER/sealed.json --passphrase env:PASSPHRASE"},
	{line: "import FOLDER/plain.json --preview", want: "To create: 0, to change: "},
	{line: "import FOLDER/sealed.json --passphrase env:PASSPHRASE --replace", want: "connections"},
	{line: "import FOLDER/missing.json", code: 1, want: "no such file"},
	{line: "import file FOLDER/plain.json --preview", want: "To create: 0"},
	{line: "import litellm -", stdin: "model_list: [{model_name: a, litellm_params: {model: openai/gpt-6-sol}}]", want: "a: openai/gpt-6-sol"},
	{line: "import portkey -", stdin: `{"provider":"openai","api_key":"x","override_params":{"model":"gpt-6-sol"}}`, want: "openai/gpt-6-sol"},
	{line: "import one-api -", stdin: `[{"id":1,"type":1,"name":"a","models":"gpt-6-sol"}]`, want: "gpt-6-sol: openai/gpt-6-sol"},
	{line: "import new-api -", stdin: `[{"id":1,"type":43,"name":"a","models":"deepseek-chat"}]`, want: "provider: deepseek"},
	{line: "import openrouter", want: "provider: openrouter"},
	{line: "import env", code: 1, want: "no variable has the key"},
	{line: "import -", stdin: "no JSON", code: 1, want: "weir export"},
	{line: "pull FOLDER/weir.yaml", want: "weir plan reads secrets from these variables: "},
	{line: "pull FOLDER/weir.yaml", code: 1, want: "--force"},
	{line: "pull", want: "accounts:"},
	{line: "plan --schema", want: "weir.yaml"},
	{line: "plan FOLDER/weir.yaml --bad", code: 1, want: "unknown flag"},
	{line: "key list", want: "NAME"},
	{line: "keys list --json", want: `"name":"carol"`},
	{line: "keyz", code: 2, want: `unknown command "keyz"; did you mean weir keys?`},
	{line: "hlep", code: 2, want: `did you mean weir help?`},
	{line: "connect", code: 2, want: `unknown command "connect"; did you mean weir setup?`},
	{line: "logs", code: 2, want: `unknown command "logs"; did you mean weir requests -f?`},
	{line: "help token rotate", want: "Replace the operator token"},
	{line: "help service uninstall", want: "Have the system start the server"},
	{line: "help completion", want: "weir completion fish > "},
	{line: "keys revok carol", code: 2, want: `unknown command "keys revok"; did you mean weir keys revoke?`},
	{line: "keys frobnicate", code: 2, want: `unknown command "keys frobnicate"; weir help keys lists the commands`},
	{line: "help keys frobnicate", code: 2, want: `unknown command "keys frobnicate"; weir help keys lists the commands`},
	{line: "call nothing hi", code: 1, want: "weir models lists those that this API key can call. (model_not_found)"},
	{line: "plan a b", code: 1, want: "unexpected argument"},
	{line: "plan -", stdin: "aliases: {tiny: local/echo}", code: 2, want: ""},
	{line: "apply - --yes", stdin: "aliases: {tiny: local/echo}"},
	{line: "plan -", stdin: "aliases: {tiny: local/echo}", want: "equal: 1"},
	{line: "plan -", stdin: "accounts: [{name: spare, provider: openai-compatible, apiKey: {env: API_KEY}}]", want: "equal: 1"},
	{line: "models unalias tiny --yes"},
	{line: "api GET /api/keys", want: `"object":"list"`},
	{line: "api get /api/version", want: `"version"`},
	{line: "api GET keys", code: 2, want: "is not a path"},
	{line: "api POST /api/combos --body -", stdin: `{"name":"raw","models":["local/echo"]}`, want: `"raw"`},
	{line: "combos rm raw --yes"},
	{line: "keys revoke carol", code: 2, want: "weir: Revoke the key carol? --yes confirms it"},
	{line: "keys revoke carol --yes"},
	{line: "accounts rm spare --yes"},
	{line: "accounts restore SPARE"},
	{line: "accounts add zzzzzzzz", code: 1, want: `PROVIDER "zzzzzzzz" is unknown; weir accounts providers lists those that are known`},
	{line: "accounts test nowhere", code: 1, want: `no account has the name or id "nowhere"; weir accounts lists them`},
	{line: "machines rename nowhere a", code: 1, want: `no machine has the name or id "nowhere"; weir machines lists them`},
	{line: "status", want: "accounts: 3 "},
	{line: "status --json", want: `"recent":`},
	{line: "doctor", want: "the credential is accepted"},
	{line: "gateways", want: "URL"},
	{line: "gateways ls", want: "URL"},
	{line: "gateways use nowhere", code: 2, want: "nowhere"},
	{line: "gateways rm nowhere", code: 2, want: "nowhere"},
	{line: "login nowhere", code: 2, want: "scheme and host"},
}

// The choices of weir are those of the API.
func TestChoicesAreThoseOfTheAPI(t *testing.T) {
	w := newWorld(t)
	if _, _, failed := w.remote(`{"kind":"other","name":"a"}`, "api", "POST", "/api/destinations", "--body", "-"); !strings.Contains(failed,
		"kind must be one of slack, discord, teams, google-chat, ntfy, email, smtp, webhook, otlp, s3.") {
		t.Error(failed)
	}
	for _, tt := range []struct{ line, values string }{
		{"models ls --kind VALUE", "llm embedding image tts stt video music rerank web image-to-text"},
		{"combos add VALUE openai/gpt-5 --allow-unknown --kind VALUE", "llm embedding image tts stt video music rerank imageToText webSearch webFetch"},
		{"keys add VALUE --scopes VALUE", "data manage export metrics"},
		{"requests --outcome VALUE", "succeeded provider_failed no_account refused left"},
		{"requests --reason VALUE", "key_limit budget concurrency key model request"},
		{"requests --status VALUE", "200 429 4xx 5xx error client_left"},
		{"usage --by VALUE", "key person account model provider endpoint tool tag:team month day hour key,model"},
		{"accounts timeline --by VALUE", "account provider model account,model"},
		{"accounts timeline --span VALUE", "24h 30d"},
	} {
		for value := range strings.FieldsSeq(tt.values) {
			w.ok(strings.Fields(strings.ReplaceAll(tt.line, "VALUE", value))...)
		}
	}
}

func TestAuditSaysThatDigestsMatch(t *testing.T) {
	w := newWorld(t)
	if code, out, failed := w.remote("", "audit", "--verify"); code != 0 || !strings.Contains(out, "Operator") ||
		failed != "The digests of all records match.\n" {
		t.Errorf("exit %d\n%s%s", code, out, failed)
	}
	if _, _, failed := w.remote("", "audit"); failed != "" {
		t.Errorf("without --verify: %s", failed)
	}
}

func TestEveryCommandOnAServer(t *testing.T) {
	w := newWorld(t)
	ran := map[string]bool{}
	for _, s := range steps {
		line := w.fill(s.line)
		s.want = strings.ReplaceAll(s.want, "ISSUER", w.issuer())
		code, out, failed, text := 0, "", "", ""
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			code, out, failed = w.remote(s.stdin, strings.Fields(line)...)
			if text = out; s.code != 0 || out == "" {
				text = failed
			}
			if !s.later || strings.Contains(text, s.want) || time.Now().After(deadline) {
				break
			}
		}
		if code != s.code || !strings.Contains(text, s.want) {
			t.Errorf("weir %s: exit %d, want %d with %q\n%s%s", line, code, s.code, s.want, out, failed)
		}
		if code == 0 || strings.HasPrefix(line, "login") || line == "import env" || strings.HasPrefix(line, "gateways") {
			ran[name(strings.Fields(line))] = true
		}
	}
	for _, c := range leaves(cli.Commands(cli.Host{})) {
		if !ran[c] {
			t.Errorf("weir %s was not run", c)
		}
	}
	compareWithAPI(t, w.seen())
}

// fill puts values into a command line.
func (w *world) fill(line string) string {
	w.Helper()
	for _, p := range []struct{ mark, args, path string }{
		{"REQUEST", "requests --json --outcome succeeded -n 1", `"data":\[\{[^}]*?"id":"([^"]+)"`},
		{"CAPTURE", "captures --json", `"id":"([^"]+)"`},
		{"INVITATION", "people invitations --json", `"invitations":\[\{"id":"([^"]+)"`},
		{"DELETED", "machines ls --deleted --json", `"machineId":"([^"]+)"`},
		{"MONTH", "usage --by month --json", `"month":"([^"]+)"`},
	} {
		if !strings.Contains(line, p.mark) {
			continue
		}
		m := regexp.MustCompile(p.path).FindStringSubmatch(w.ok(strings.Fields(p.args)...))
		if m == nil {
			w.Fatalf("no %s", p.mark)
		}
		line = strings.Replace(line, p.mark, m[1], 1)
	}
	if strings.Contains(line, "ADA") {
		w.joins("Ada")
		line = strings.Replace(line, "ADA", "Ada", 1)
	}
	if strings.Contains(line, "SPARE") {
		m := regexp.MustCompile(`"target":"([^"]+)"`).FindStringSubmatch(w.ok("audit", "-n", "1", "--json"))
		line = strings.Replace(line, "SPARE", m[1], 1)
	}
	if strings.Contains(line, "IDP") {
		m := regexp.MustCompile(`"id":"([^"]+)"`).FindStringSubmatch(w.ok("identity-providers", "--json"))
		line = strings.Replace(line, "IDP", m[1], 1)
	}
	if strings.Contains(line, "KEYFILE") {
		if err := os.WriteFile(filepath.Join(w.home, "key"), []byte(w.ok("keys", "add", "scripts")), 0o600); err != nil {
			w.Fatal(err)
		}
	}
	return strings.NewReplacer("KEYFILE", filepath.Join(w.home, "key"), "UPSTREAM", w.upstream.URL, "ISSUER", w.issuer(), "FOLDER", w.home, "ACME", acme).Replace(line)
}

// joins accepts an invitation, and returns the id of the person.
func (w *world) joins(name string) string {
	w.Helper()
	_, link, note := w.remote("", "people", "invite", name, "--budget", "20/month", "--keys", "2")
	if !strings.Contains(note, w.url+" is this computer only.") { // the person cannot open it elsewhere
		w.Errorf("the link %s has no note on its address: %s", link, note)
	}
	origin, secret, _ := strings.Cut(strings.TrimSpace(link), "/#/invitation/")
	r, _ := http.NewRequest("POST", origin+"/api/session", strings.NewReader(`{"invitation":"`+secret+`","name":"`+name+`"}`))
	r.Header.Set("content-type", "application/json")
	r.Header.Set("origin", origin)
	resp, err := http.DefaultClient.Do(r)
	if err != nil || resp.StatusCode != 200 {
		w.Fatalf("%s: %v %v", link, resp, err)
	}
	raw, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	w.mu.Lock()
	defer w.mu.Unlock() // no command signs people in
	w.calls = slices.DeleteFunc(w.calls, func(c string) bool { return c == "POST /api/session" })
	return regexp.MustCompile(`p_[0-9a-f]{32}`).FindString(string(raw))
}

// name returns the words of a command in a command line.
func name(args []string) string {
	words := args[:1]
	if len(args) > 1 && slices.Contains(leaves(cli.Commands(cli.Host{})), args[0]+" "+args[1]) {
		words = args[:2]
	}
	return strings.Join(words, " ")
}

// leaves returns the names of all commands.
func leaves(commands []*cobra.Command) (out []string) {
	root := &cobra.Command{Use: "weir"}
	root.AddCommand(commands...)
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Runnable() {
			_, name, _ := strings.Cut(c.CommandPath(), " ")
			out = append(out, name)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return out
}

// operations returns the operations of the API by their paths and methods.
func operations(t *testing.T) map[string]map[string]json.RawMessage {
	t.Helper()
	raw, err := os.ReadFile("../../docs/reference/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Paths
}

// compareWithAPI compares calls with the operations of the management API.
func compareWithAPI(t *testing.T, calls []string) {
	t.Helper()
	total, reasons := 0, maps.Clone(withoutCommand)
	for path, methods := range operations(t) {
		if !strings.HasPrefix(path, "/api/") && !strings.HasPrefix(path, "/setup/") && path != "/oauth/callback" && path != "/oidc/callback" && path != "/health" {
			continue
		}
		pattern := regexp.MustCompile(`^(/\w{16})?` + regexp.MustCompile(`\\\{[^}]*\\\}`).ReplaceAllString(regexp.QuoteMeta(path), `[^/]+`) + `$`)
		for method := range methods {
			if !slices.Contains([]string{"get", "post", "put", "patch", "delete"}, method) {
				continue
			}
			total++
			op := strings.ToUpper(method) + " " + path
			made := slices.ContainsFunc(calls, func(c string) bool {
				m, p, _ := strings.Cut(c, " ")
				return m == strings.ToUpper(method) && pattern.MatchString(p)
			})
			switch reason, listed := reasons[op]; {
			case made && listed:
				t.Errorf("%s has a command: remove it from withoutCommand", op)
			case !made && !listed:
				t.Errorf("%s has no command and no reason", op)
			case listed && reason == "":
				t.Errorf("%s: no reason", op)
			}
			delete(reasons, op)
		}
	}
	for op := range reasons {
		t.Errorf("%s is not in the document", op)
	}
	if total < 60 {
		t.Errorf("only %d operations", total)
	}
}

func TestSetupOfAToolWithoutAScriptPrintsItsSettings(t *testing.T) {
	w := newWorld(t)
	w.ok("accounts", "add", "openai-compatible", "--base-url", w.upstream.URL+"/v1", "--prefix", "local", "--api-key", "env:API_KEY")
	code, out, failed := w.run("", "setup", "cursor")
	for _, want := range []string{"OpenAI API Key: sk-", "Model: local/echo", "Cursor's servers make the calls, and cannot reach http://127.0.0.1:", "The key Cursor is created."} {
		if code != 0 || !strings.Contains(out+failed, want) {
			t.Errorf("setup of a tool without a script: exit %d, no %q in %s%s", code, want, out, failed)
		}
	}
	if _, out, failed := w.run("", "setup", "cursor"); !strings.Contains(out, "OpenAI API Key: YOUR_KEY") || !strings.Contains(failed, "weir keys rotate Cursor") {
		t.Errorf("its second setup: %s%s", out, failed)
	}
}

func TestUsageByProviderCountsTheAccountsOfAServer(t *testing.T) {
	w := newWorld(t)
	_, out, _ := w.run("", "accounts", "add", "openai-compatible", "--name", "One", "--base-url", w.upstream.URL+"/v1", "--prefix", "local", "--api-key", "env:API_KEY", "--json")
	id := gjson.Get(out, "provider").Str
	w.run("", "accounts", "add", id, "--name", "Two", "--base-url", w.upstream.URL+"/v1", "--prefix", "local", "--api-key", "env:API_KEY")
	w.run("", "call", "local/echo", "Hello")
	until := time.Now().Add(20 * time.Second)
	for shown := ""; !strings.Contains(shown, "One and 1 more (OpenAI-compatible)"); _, shown, _ = w.run("", "usage", "--by", "provider") {
		if time.Now().After(until) {
			t.Fatalf("%s, usage by provider: %s", id, shown)
		}
	}
}

func TestSavedModelsThatTheirServerDoesNotListAreWarnedOf(t *testing.T) {
	w := newWorld(t)
	w.run("", "accounts", "add", "openai-compatible", "--base-url", w.upstream.URL+"/v1", "--prefix", "local", "--api-key", "env:API_KEY")
	for _, save := range [][]string{{"keys", "add", "typed", "--models", "local/eco,local/echo,local/*,openai/gpt-5-mini"},
		{"settings", "set", `modelPrices={"local/eco":"1/2","local/echo":"1/2"}`}} {
		code, out, failed := w.run("", save...)
		if code != 0 || strings.Count(failed, "warning") != 1 || !strings.Contains(failed, "weir models does not list local/eco; did you mean local/echo?") {
			t.Errorf("%s: exit %d, %s%s", save[0], code, out, failed)
		}
	}
}

func TestCommandsWorkOnADataDirectory(t *testing.T) {
	w := newWorld(t)
	code, out, failed := w.run("", "keys", "add", "local")
	if code != 0 || !strings.HasPrefix(out, "sk-") {
		t.Errorf("with a server: exit %d, %s%s", code, out, failed)
	}
	_, setup, _ := w.run("", "accounts", "add", "openai-compatible", "--base-url", w.upstream.URL+"/v1", "--prefix", "local", "--api-key", "env:API_KEY")
	if code, out, failed := w.run("", "call", "local/echo", "Hello"); code != 0 || out != "You said: Hello\n" {
		t.Errorf("call: exit %d, %s%s%s", code, setup, out, failed)
	}
	if _, out, failed := w.run("", "models"); !strings.Contains(out, "local/echo") || failed != "" {
		t.Errorf("models with an account: %s%s", out, failed)
	}
	const warned = "weir: warning: weir models does not list local/eco; did you mean local/echo? weir call local/eco Hello tries it\n"
	if code, out, failed := w.run("", "setup", "codex", "--model", "local/eco"); code != 0 || !strings.Contains(out, "/setup/codex.sh") || failed != warned {
		t.Errorf("setup of a model that is not listed: exit %d, %s%s", code, out, failed)
	}
	// One key serves the calls of an hour, so the audit log has one record of them. One that was
	// revoked is replaced.
	keysOfCalls := func() (ids []string) {
		_, out, _ := w.run("", "keys", "--json")
		for _, id := range gjson.Get(out, `data.#(name=="weir call")#.id`).Array() {
			ids = append(ids, id.String())
		}
		return ids
	}
	call := func(more ...string) {
		t.Helper()
		code, out, failed := w.run("", append([]string{"call", "local/echo", "Again"}, more...)...)
		if code != 0 || out != "You said: Again\n" {
			t.Errorf("call: exit %d, %s%s", code, out, failed)
		}
	}
	call()
	first := keysOfCalls()
	_, records, _ := w.run("", "audit", "--json")
	file := w.gatewaysFile()
	info, err := os.Stat(file)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 || len(first) != 1 || strings.Count(records, `"POST /api/keys"`) != 2 {
		t.Errorf("the keys of two calls are %v, %v, %v", first, err, records)
	}
	// A provider that refuses its key says nothing about this one.
	w.run("", "accounts", "add", "openai-compatible", "--base-url", w.upstream.URL+"/strict/v1", "--prefix", "strict", "--api-key", "env:API_KEY")
	_, _, failed = w.run("", "call", "strict/echo", "Hello")
	if same := keysOfCalls(); !strings.Contains(failed, "account_key_refused") || !slices.Equal(same, first) {
		t.Errorf("the key of a call that a provider refuses is %v after %v: %s", same, first, failed)
	}
	w.run("", "keys", "revoke", "weir call", "--yes")
	call()
	if second := keysOfCalls(); len(second) != 1 || second[0] == first[0] {
		t.Errorf("the key of a third call is %v after %v", second, first)
	}
	// Where nothing can be stored, the key goes with its call.
	w.run("", "keys", "revoke", "weir call", "--yes")
	if err := os.WriteFile(file, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if call("--data", w.data); len(keysOfCalls()) > 0 {
		t.Errorf("%v stay", keysOfCalls())
	}
	os.Remove(file)
	// Without a server, the program opens the directory itself.
	other := &world{T: t, home: t.TempDir()}
	other.data = filepath.Join(other.home, "data")
	if code, _, failed := other.run("", "keys"); code != 1 || !strings.Contains(failed, "no database") {
		t.Errorf("without a database: exit %d, %s", code, failed)
	}
	other.run("", "init", "--data", other.data)
	if code, out, failed := other.run("", "keys"); code != 0 || !strings.Contains(out, "Default key") {
		t.Errorf("without a server: exit %d, %s%s", code, out, failed)
	}
	if code, out, failed := other.run("", "keys", "add", "later"); code != 0 || !strings.HasPrefix(out, "sk-") {
		t.Errorf("keys add without a server: exit %d, %s%s", code, out, failed)
	}
	if entries, _ := filepath.Glob(filepath.Join(other.data, "control*")); len(entries) > 0 {
		t.Errorf("%v stay", entries)
	}
}

func TestCompletionKnowsNames(t *testing.T) {
	w := newWorld(t)
	w.run("", "keys", "add", "laptop")
	for _, tt := range []struct{ line, want string }{
		{"keys pause ", "laptop\n"}, {"keys pa", "pause\t"}, {"accounts add ", "openai\n"}, {"explain ", "openai/gpt-6-sol\n"},
		{"setup ", "codex\n"}, {"keys add --exp", "--expires"}, {"machines rm ", "main\n"},
	} {
		_, out, failed := w.run("", append([]string{"__complete"}, strings.Split(tt.line, " ")...)...)
		if !strings.Contains(out, tt.want) {
			t.Errorf("%q: %q %s", tt.line, out, failed)
		}
	}
}
