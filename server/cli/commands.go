package cli

import "slices"

// commands returns the commands in the order of the help.
func commands() []group {
	return []group{
		{ops: []op{{use: "login URL", short: "sign in to a gateway and use it from now on", long: loginText,
			fields: []field{{"name", "", "NAME", "name of the gateway, as --gateway takes it; its host by default", nil},
				{"ci", "", toggle, "sign in with the ID token of a CI job: that of GitHub Actions, or WEIR_ID_TOKEN", nil},
				{"token", "", toggle, "ask for the operator token or a key, in place of an approval in the dashboard", nil}}, run: (*app).login}}},
		{"gateways", "gateway", "list, choose and forget the gateways of weir login", []op{
			{use: "ls", short: "list gateways", run: (*app).listGateways},
			{use: "use [NAME]", short: "choose the gateway that commands use; without NAME the data directory of this computer",
				run: (*app).useGateway},
			{use: "rm NAME", short: "forget the credential of a gateway", run: (*app).forgetGateway},
		}},
		{ops: []op{{use: "status", short: "show the server, its machines, and what is wrong",
			long: failText, run: (*app).status}}},
		{"machines", "machine", "list, create, rename, delete and restore machines", []op{
			{use: "ls", short: "list machines", call: "GET /api/machines", columns: machineColumns, fields: []field{
				{"deleted", "?deleted", toggle, "list the deleted machines that can still be restored", nil}}},
			{use: "add NAME", short: "create a machine and print its first key, this once", call: "POST /api/machines", args: []string{"name"}, run: (*app).addMachine,
				fields: []field{{"id", "machineId", "ID", "id of a machine that moves here, so that its keys stay valid", nil}}},
			{use: "rename MACHINE NAME", short: "change the name of a machine", call: "PATCH /api/machines/{id}", args: []string{"name"}},
			{use: "rm MACHINE", short: "delete a machine with everything in it", long: removeText, call: "DELETE /api/machines/{id}", ask: true,
				fields: []field{{"now", "?now", toggle, "erase it at once", nil}}, run: (*app).removeMachine},
			{use: "restore ID", short: "restore a machine that was deleted in the last 7 days", call: "POST /api/machines/{}/restore"},
		}},
		{"identity-providers", "identity-provider", "list, add, change, test and remove identity providers", []op{
			{use: "ls", short: "list identity providers", call: "GET /api/identity-providers", columns: idpColumns},
			{use: "add NAME ISSUER CLIENT", short: "add a provider; CLIENT is the client id or the audience of its tokens", long: idpText,
				call: "POST /api/identity-providers", args: []string{"name", "issuer", "clientId"}, fields: idpFields[3:]},
			{use: "set PROVIDER", short: "change the fields that flags name; the value none removes one", long: idpText, call: "PUT /api/identity-providers/{id}",
				fields: idpFields, run: (*app).setIdentityProvider},
			{use: "test PROVIDER", short: "ask a provider again, and say what it lacks", call: "POST /api/identity-providers/{id}/test",
				run: (*app).testIdentityProvider},
			{use: "rm PROVIDER", short: "remove a provider; sessions that it has opened go on", call: "DELETE /api/identity-providers/{id}", ask: true},
			{use: "sign-ins", short: "list sign-ins, refused ones, and machines that were created or deleted", call: "GET /api/sign-ins", columns: signInColumns, run: (*app).audit, fields: []field{
				{"limit,n", "", "NUMBER", "number of records, 100 by default", asRows(100)}}},
			{use: "end-sessions", short: "end the sessions of all people", call: "DELETE /api/sessions", ask: true, done: "The sessions of all people have ended."},
		}},
		{"accounts", "account", "list, connect, test and change accounts at providers", accountOps},
		{"models", "model", "list models, aliases, and added and disabled models", modelOps},
		{"keys", "key", "list, create, change, rotate and revoke keys", keyOps},
		{"budgets", "budget", "list, create, change and delete budgets", []op{
			{use: "ls", short: "list budgets with what is spent", call: "GET /api/budgets", columns: budgetColumns,
				run: (*app).listNamed},
			{use: "show BUDGET", short: "show a budget", call: "GET /api/budgets/{id}"},
			{use: "add NAME LIMIT", short: "create a budget of the machine, or of a key", long: limitText,
				call: "POST /api/budgets", args: []string{"name", "limit"}, fields: budgetFields[2:], run: (*app).addBudget},
			{use: "set BUDGET", short: "change the fields that flags name; the value none removes one", call: "PUT /api/budgets/{id}",
				fields: budgetFields[:8]},
			{use: "rm BUDGET", short: "delete a budget", call: "DELETE /api/budgets/{id}", ask: true},
		}},
		{"people", "person", "list, invite, change and remove people of the machine", peopleOps},
		{"combos", "combo", "list, create, change and delete combos", []op{
			{use: "ls", short: "list combos", call: "GET /api/combos", columns: comboColumns},
			{use: "show COMBO", short: "show a combo", call: "GET /api/combos/{id}"},
			{use: "add NAME MODEL…", short: "create a combo of models", call: "POST /api/combos", args: []string{"name", "models…"},
				fields: comboFields[2:]},
			{use: "set COMBO", short: "change the fields that flags name; the value none removes one", call: "PUT /api/combos/{id}", fields: comboFields},
			{use: "rm COMBO", short: "delete a combo", call: "DELETE /api/combos/{id}", ask: true},
		}},
		{"destinations", "destination", "manage destinations of notifications and exports", destinationOps},
		{"settings", "", "show and change the settings of the machine", []op{
			{use: "ls", short: "show the settings", call: "GET /api/settings"},
			{use: "set NAME=VALUE…", short: "change settings; an empty value is the default", long: settingText,
				call: "PATCH /api/settings", fields: []field{allowUnknown}, run: (*app).setSettings, done: "The settings are changed."},
		}},
		{ops: []op{{use: "usage", short: "add up requests, tokens and costs", long: usageText, call: "GET /api/usage", fields: usageFields, run: (*app).usage}}},
		{"requests", "request", "list the latest requests; -f follows them", []op{
			{use: "ls", short: "list the latest ones; -f follows them", call: "GET /api/requests", columns: requestColumns,
				fields: requestFields, run: (*app).requests},
			{use: "show [ID]", short: "show a request with its attempts; without ID the latest, or that of flags", call: "GET /api/requests/{}",
				fields: slices.Concat(requestFields[1:2], requestFields[3:len(requestFields)-1]), run: (*app).showRequest},
		}},
		{"captures", "capture", "list, show and delete stored prompts and answers", []op{
			{use: "ls", short: "list captures", call: "GET /api/captures", columns: captureColumns, run: (*app).listNamed},
			{use: "show REQUEST", short: "print the stored prompt and answer of a request", call: "GET /api/captures/{}"},
			{use: "rm REQUEST", short: "delete the stored prompt and answer of a request", call: "DELETE /api/captures/{}", ask: true,
				done: "The stored prompt and answer of %s are deleted."},
			{use: "clear", short: "delete all stored prompts and answers", call: "DELETE /api/captures", ask: true, done: "All stored prompts and answers are deleted."},
		}},
		{ops: []op{{use: "audit", short: "list who changed what", long: auditText, call: "GET /api/audit", columns: auditColumns, fields: []field{
			{"limit,n", "?limit", "NUMBER", "number of records, 100 by default and at most 500", asRows(500)}, {"text", "?q", "TEXT", "only records that contain TEXT", nil},
			{"verify", "?verify", toggle, "find a record that was damaged, or edited without the digests after it", nil},
		}, run: (*app).audit}}},
		{ops: []op{{use: "explain MODEL", short: "show which accounts a request would try, in order", call: "POST /api/explain",
			long: "The request is an example, one message of a word. Budgets reserve the longest answer of the model, unless --max-tokens says what the request asks for.",
			fields: []field{{"path", "path", "PATH", "path of the request; /v1/chat/completions by default", nil},
				{"max-tokens", "max_tokens", "NUMBER", "output tokens that the request asks for", asNumber}, {"key", "", "KEY", "key of the request: its models, limits and budgets apply", nil}}, run: (*app).explain}}},
		{ops: []op{{use: "call MODEL [PROMPT]", short: "ask a model and print its answer as it comes", long: callText,
			call: "POST /v1/chat/completions", fields: []field{{"system", "", "PROMPT", "system prompt", nil},
				{"key", "key", "REF", "key to call with: env:NAME, file:PATH or -", asReference}}, run: (*app).chat}}},
		{ops: []op{{use: "setup [TOOL]", short: "print the command that sets up a tool, or list tools", long: setupText,
			call: "POST /api/setup", args: []string{"tool"}, fields: []field{{"model", "model", "MODEL", "model that the tool uses", nil},
				{"small-model", "smallModel", "MODEL", "model for the tool's background work", nil}, allowUnknown}, run: (*app).setup}}},
		{ops: []op{{use: "export [FILE]", short: "write the configuration of the machine", call: "GET /api/export",
			long: "It has no secrets unless --sealed is given. Without FILE it is printed.", fields: []field{
				{"sealed", "", toggle, "include the secrets, encrypted with a passphrase", nil}, passphrase,
				{"force", "", toggle, "replace FILE if it exists", nil}}, run: (*app).export}}},
		{"import", "", "read a configuration of export, or of another gateway", []op{
			{use: "file FILE", short: "read a configuration that export has written, or a seed", call: "POST /api/import",
				fields: []field{{"preview", "preview", toggle, "change nothing, print what would change", nil},
					{"replace", "replace", toggle, "delete what is not in the file", nil},
					{"keys", "keys", toggle, "import the keys too", nil},
					{"people", "people", toggle, "import the people and their roles too; needs the operator token", nil}, passphrase}, run: (*app).importFile},
			{use: "litellm FILE", short: "convert a config.yaml of LiteLLM to weir.yaml", long: importText, fields: outFields,
				run: importOther((*importer).litellm)},
			{use: "portkey FILE", short: "convert a JSON config of Portkey to weir.yaml", long: importText, fields: outFields,
				run: importOther((*importer).portkey)},
			{use: "one-api FILE", short: "convert the channels of one-api in JSON to weir.yaml", long: channelsText, fields: outFields,
				run: importOther((*importer).oneAPI)},
			{use: "new-api FILE", short: "convert the channels of new-api in JSON to weir.yaml", long: channelsText, fields: outFields,
				run: importOther((*importer).newAPI)},
			{use: "openrouter", short: "write weir.yaml with an account at OpenRouter", long: importText, fields: outFields,
				run: importOther((*importer).openrouter)},
			{use: "env", short: "write weir.yaml with the provider keys of the environment", long: importText, fields: outFields,
				run: importOther((*importer).environment)},
		}},
		{ops: []op{{use: "plan [FILE]", short: "show what apply would change", long: "The exit code is 0 if nothing would change, and 2 otherwise.\n\n" + planText,
			fields: append([]field{{"schema", "", toggle, "print the JSON Schema of the file", nil}}, planFields...), run: (*app).plan}}},
		{ops: []op{{use: "apply [FILE]", short: "change the machine to match weir.yaml", long: planText, fields: planFields, ask: true, run: (*app).apply}}},
		{ops: []op{{use: "pull [FILE]", short: "print the configuration of the machine as weir.yaml",
			long: "weir plan and weir apply read it. In place of secrets it names variables of the environment.", call: "GET /api/settings", run: (*app).pull,
			fields: []field{{"force", "", toggle, "replace FILE if it exists", nil}}}}},
		{ops: []op{{use: "doctor", short: "examine a gateway and its machine, and say what to do", long: failText, run: (*app).doctor, fields: []field{
			{"security", "", toggle, "check files, the network, secrets and the keys of all machines for risks", nil}}}}},
		{ops: []op{{use: "api METHOD PATH", short: "call any route of the API, for scripts", run: (*app).api, fields: []field{
			{"body", "", "FILE", "file with the body in JSON, - for the standard input", nil}}}}},
	}
}

const (
	idpText      = "A rule is for all machines: editor:groups=ai,owner:groups=admins. In JSON it may have\na path of claims and machines:\n  '[{\"claim\":[\"realm_access\",\"roles\"],\"value\":\"ai\",\"role\":\"editor\",\"machines\":[\"ID\"]}]'\nRegister the redirect address https://GATEWAY/oidc/callback at the provider."
	removeText   = "It can be restored for 7 days. With --now it is erased at once, with its credentials."
	loginText    = "On a terminal it shows a code that someone who is signed in to the dashboard approves, on\nany computer: the credential is then a key of one machine, of scope manage, for 30 days.\nWith --token it is the operator token or a key, read without echo; without a terminal it is\nread from the standard input. It is stored in\ngateways.json of the user's configuration, mode 600, and sent to this URL only."
	failText     = "The exit code is 1 if something does not work. An account has the state of its last call or\ntest, which is known at once; counts of requests are up to two seconds behind."
	usageText    = "Without --month, --from and --to it is the last seven days, by UTC. Tests of accounts are in\ntokens and costs, and are no requests."
	limitText    = "LIMIT is 20/month in USD, 500000tokens/day or 1000requests/day; windows are minute, 5h,\nday, week, month and total."
	settingText  = "A value is a text, a number, or a list or an object of JSON:\n  weir settings set defaultModel=openai/gpt-6.1-sol 'modelPrices={\"openai/own\":\"1/2\"}'"
	inviteText   = "A member has keys of their own, within these limits, and sees what these do; a viewer sees\neverything, an editor changes it, and an owner also invites people. Only members have limits; each\ncall sets all of them."
	callText     = "PROMPT is read from the standard input if it is left out. With the operator token, a key\nis created for the calls of an hour. It is stored in gateways.json of the user's\nconfiguration, mode 600."
	setupText    = "The command works once, within minutes, on the computer of the tool: it creates a key and\nwrites the settings. To run it here:\n  weir setup codex | sh\nFor a tool without a script it is the settings, with a new key."
	auditText    = "Sign-ins of people and of the operator, and sessions that were ended, are those of the gateway:\nweir identity-providers sign-ins"
	planText     = "FILE is weir.yaml by default, and - is the standard input. Sections that the file does not\nhave are left alone, and fields that an entry does not name keep their values."
	importText   = "Nothing is changed yet: review the file, then run weir plan and weir apply. A report on the\nstandard error says what was taken, what weir does in another way and what it cannot do. The\nfile has no secrets: it names the variables that they are read from."
	channelsText = "FILE has the rows of the table channels, as sqlite3 -json one-api.db 'select * from channels'\nprints them, or the answer of GET /api/channel/.\n\n" + importText
	accountText  = "The API key is read from the terminal without echo, or from the standard input, unless a\nflag refers to it: --api-key env:OPENAI_API_KEY or --api-key file:key.txt. weir accounts\nproviders lists the providers. vllm, lmstudio, llamacpp and litellm are at their usual\naddresses unless --base-url says otherwise; any other server of your own is\nopenai-compatible or anthropic-compatible, with --base-url. Its key, if it wants one, is\ngiven by --api-key only, as in --api-key - for the standard input.\nThe account is tested once it is stored, by one short call, and stays if that fails."
)

var idpFields = []field{
	{"name", "name", "NAME", "name on the sign-in button", nil},
	{"issuer", "issuer", "ISSUER", "issuer, exactly as in its tokens", nil},
	{"client", "clientId", "CLIENT", "the client id or the audience of its tokens", nil},
	{"kind", "kind", "KIND", "what it is, if people do not sign in there", nil},
	{"secret", "clientSecret", "REF", "client secret: env:NAME, file:PATH or -", asReference},
	{"scopes", "scopes", "LIST", "scopes besides openid; email and profile by default", asList},
	{"rules", "rules", "RULES", "who gets which role: ROLE:CLAIM=VALUE between commas, or JSON", asRules},
}

var outFields = []field{
	{"out", "", "FILE", "where weir.yaml is written, in place of the standard output", nil},
	{"force", "", toggle, "replace that file if it exists", nil},
}

// allowUnknown accepts names of models that are refused as mistakes.
var allowUnknown = field{"allow-unknown", "allowUnknown", toggle, "accept names of models that weir does not know", nil}

var planFields = []field{
	{"prune", "", toggle, "delete what is not in the file, in the sections that it has", nil},
	{"secrets", "", toggle, "send the secrets of all accounts, also unchanged ones", nil},
}

var passphrase = field{"passphrase", "passphrase", "REF", "the passphrase: env:NAME, file:PATH or -", asReference}

var accountOps = []op{
	{use: "ls", short: "list accounts", call: "GET /api/providers", columns: accountColumns, run: (*app).listAccounts},
	{use: "show ACCOUNT", short: "show an account", call: "GET /api/providers/{id}"},
	{use: "add PROVIDER", short: "connect an account", long: accountText, call: "POST /api/providers", args: []string{"provider"},
		fields: slices.Concat(accountFields, credentials, []field{{"no-test", "", toggle, "store it without a test", nil}}), run: (*app).addAccount},
	{use: "sign-in PROVIDER", short: "connect an account by signing in at the provider with a code", call: "POST /api/oauth/{}/device",
		fields: accountFields[:1], run: (*app).signIn},
	{use: "set ACCOUNT", short: "change the fields that flags name; the value none removes one", call: "PUT /api/providers/{id}",
		long:   "A credential is for one host: with the --base-url of another host give the new one too, as in\n--api-key env:NAME. weir accounts rotate replaces the credential alone.",
		fields: slices.Concat(accountFields, credentials), run: (*app).setAccount},
	{use: "test ACCOUNT", short: "call the provider once", call: "POST /api/providers/{id}/test", run: (*app).test},
	{use: "rotate ACCOUNT", short: "replace the credential of an account, and test it",
		long: "Without a flag it asks for the API key, without echo, or reads it from the standard input.", call: "PUT /api/providers/{id}",
		fields: credentials, run: (*app).rotateAccount},
	{use: "pause ACCOUNT", short: "make no calls with an account", call: "PUT /api/providers/{id}", body: map[string]any{"isActive": false}},
	{use: "resume ACCOUNT", short: "make calls with an account again", call: "PUT /api/providers/{id}", body: map[string]any{"isActive": true}},
	{use: "rm ACCOUNT", short: "delete an account; restore undoes it for a minute", call: "DELETE /api/providers/{id}", ask: true},
	{use: "restore ID", short: "restore an account that was deleted in the last minute", call: "POST /api/providers/{}/restore"},
	{use: "models ACCOUNT", short: "list the models that the provider offers", call: "GET /api/providers/{id}/models",
		columns: []column{{title: "MODEL", path: "id"}}},
	{use: "quota", short: "list what is left of the limits of each account", call: "GET /api/quota", columns: quotaColumns, run: (*app).quota},
	{use: "timeline", short: "show what the attempts with each account found, by hour or day", call: "GET /api/health/timeline",
		columns: timelineColumns, fields: []field{{"by", "", "LIST", "what to group by, account by default", nil},
			{"span", "?span", "SPAN", "time to show, 24h by default", nil}}, run: (*app).timeline},
	{use: "outages", short: "show what the status pages of the providers say", call: "GET /api/health/providers", columns: outageColumns},
	{use: "providers", short: "list the providers that weir knows", call: "GET /api/catalog/providers", run: (*app).providers},
}

var accountFields = []field{
	{"name", "name", "NAME", "its name", nil},
	{"priority", "priority", "NUMBER", "accounts with lower numbers are tried first", asNumber},
	{"weight", "weight", "NUMBER", "share of the traffic, with the strategy weighted", asNumber},
	{"base-url", "providerSpecificData.baseUrl", "URL", "address of the server", nil},
	{"prefix", "providerSpecificData.prefix", "TEXT", "its models are named TEXT/MODEL", nil},
	{"enabled-models", "providerSpecificData.enabledModels", "LIST", "serve only these models", asList},
	{"proxy-url", "providerSpecificData.proxyUrl", "URL", "call the provider through this HTTP CONNECT proxy", nil},
	{"var", "providerSpecificData.", "NAME=VALUE", "a variable of the provider, such as region=eu-west-1", nil},
}

// credentials are the secrets of an account. A flag refers to one.
var credentials = []field{
	{"api-key", "apiKey", "REF", "API key: env:NAME, file:PATH or -", asReference},
	{"access-key-id", "accessKeyId", "REF", "access key ID of AWS", asReference},
	{"secret-access-key", "secretAccessKey", "REF", "secret access key of AWS", asReference},
	{"session-token", "sessionToken", "REF", "session token of AWS", asReference},
	{"service-account", "serviceAccount", "REF", "key file of a Google service account, in JSON", asReference},
	{"access-token", "accessToken", "REF", "access token of OAuth", asReference},
	{"refresh-token", "refreshToken", "REF", "refresh token of OAuth", asReference},
}

var modelOps = []op{
	{use: "ls", short: "list the models of a kind", call: "GET /api/models/list/{}", columns: modelColumns, run: (*app).models,
		fields: []field{{"kind", "", "KIND", "kind of the models, llm by default", nil}}},
	{use: "show MODEL", short: "show what is known of a model", call: "GET /api/models/info", args: []string{"?id"}},
	{use: "unavailable", short: "list the models that cannot be called at the moment, and why", call: "GET /api/models/availability", columns: unavailableColumns},
	{use: "aliases", short: "list the aliases", call: "GET /api/models/alias", member: "aliases"},
	{use: "alias ALIAS MODEL", short: "create or change an alias", call: "PUT /api/models/alias", args: []string{"alias", "model"},
		fields: []field{allowUnknown}, done: "The alias %s is stored."},
	{use: "unalias ALIAS", short: "delete an alias", call: "DELETE /api/models/alias", args: []string{"?alias"}, ask: true,
		done: "The alias %s is deleted."},
	{use: "custom", short: "list the models that were added", call: "GET /api/models/custom", columns: customColumns},
	{use: "add PREFIX MODEL", short: "add a model that weir does not know, or change it", call: "POST /api/models/custom",
		args: []string{"providerAlias", "id"}, fields: []field{{"name", "name", "NAME", "name in lists", nil}, {"kind", "type", "KIND", "kind of the model, llm by default", nil},
			{"context", "contextLength", "TOKENS", "size of its context", asNumber}, {"max-tokens", "maxTokens", "TOKENS", "longest answer", asNumber}}},
	{use: "rm PREFIX MODEL", short: "delete a model that was added", call: "DELETE /api/models/custom", args: []string{"?providerAlias", "?id"}, ask: true,
		fields: []field{{"kind", "?type", "KIND", "kind of the model", nil}}},
	{use: "disabled", short: "list the disabled models", call: "GET /api/models/disabled", member: "disabled"},
	{use: "disable PREFIX MODEL…", short: "disable models", call: "POST /api/models/disabled", args: []string{"providerAlias", "ids…"},
		run: (*app).disableModels, done: "The models of %s are disabled."},
	{use: "enable PREFIX [MODEL]", short: "enable a model again, or all of the prefix", call: "DELETE /api/models/disabled",
		args: []string{"?providerAlias", "?id"}, done: "The models of %s are enabled."},
}

var destinationOps = []op{
	{use: "ls", short: "list destinations", call: "GET /api/destinations", columns: destinationColumns},
	{use: "kinds", short: "list the kinds with their settings", call: "GET /api/destinations", member: "kinds", columns: kindColumns, wrap: true},
	{use: "show DESTINATION", short: "show a destination", call: "GET /api/destinations/{id}"},
	{use: "add KIND NAME", short: "create a destination", call: "POST /api/destinations", args: []string{"kind", "name"}, fields: destinationFields[1:]},
	{use: "set DESTINATION", short: "change the fields that flags name", call: "PUT /api/destinations/{id}", fields: destinationFields},
	{use: "test DESTINATION", short: "send a test", call: "POST /api/destinations/{id}/test", run: (*app).testDestination},
	{use: "deliveries DESTINATION", short: "list deliveries that wait or have failed", call: "GET /api/destinations/{id}/deliveries",
		columns: deliveryColumns},
	{use: "pause DESTINATION", short: "stop sending", call: "PUT /api/destinations/{id}", body: map[string]any{"enabled": false}},
	{use: "resume DESTINATION", short: "send again", call: "PUT /api/destinations/{id}", body: map[string]any{"enabled": true}},
	{use: "rm DESTINATION", short: "delete a destination", call: "DELETE /api/destinations/{id}", ask: true},
}

var destinationFields = []field{
	{"name", "name", "NAME", "its name", nil},
	{"events", "events", "LIST", "events to notify of; by default faults of accounts, budgets, new sign-ins", asList},
	{"set", "settings.", "NAME=VALUE", "a setting; weir destinations kinds lists them", nil},
	{"secret", "settings.", "NAME=REF", "a secret setting, such as url=env:SLACK_URL; REF is env:NAME, file:PATH or -", asReference},
}

var keyOps = []op{
	{use: "ls", short: "list keys", call: "GET /api/keys", columns: keyColumns},
	{use: "show KEY", short: "show a key", call: "GET /api/keys/{id}"},
	{use: "add NAME", short: "create a key and print it, this once", call: "POST /api/keys", args: []string{"name"}, fields: append([]field{
		{"budget", "budget", "LIMIT", "budget of the key: 20/month in USD, or 500000tokens/day", asLimit}}, keyFields[1:]...), run: (*app).addKey},
	{use: "set KEY", short: "change the fields that flags name; the value none removes one", call: "PUT /api/keys/{id}", fields: keyFields},
	{use: "rotate KEY", short: "replace a key and print the new one", call: "POST /api/keys/{id}/rotate", fields: []field{
		{"overlap", "overlapSeconds", "TIME", "how long the old key stays valid, such as 2h or 0s; a day by default", asSeconds}}},
	{use: "usage KEY", short: "show what a key has used, by model", call: "GET /api/keys/{id}/usage", fields: usageFields[1:4], run: (*app).usage},
	{use: "networks KEY", short: "list the networks that a key was used from", call: "GET /api/keys/{id}/networks", columns: networkColumns},
	{use: "pause KEY", short: "refuse calls with a key", call: "PUT /api/keys/{id}", body: map[string]any{"paused": true}},
	{use: "resume KEY", short: "accept calls with a key again", call: "PUT /api/keys/{id}", body: map[string]any{"paused": false}},
	{use: "revoke KEY", short: "revoke a key", call: "DELETE /api/keys/{id}", ask: true},
}

var keyFields = []field{
	{"name", "name", "NAME", "what the key is for", nil},
	{"models", "models", "LIST", "models that the key may call, such as openai/*,claude", asList},
	{"scopes", "scopes", "LIST", "what the key may do, data by default", asList},
	{"tags", "tags", "LIST", "tags of its calls, such as team=web", asList},
	{"expires", "expiresAt", "TIME", "when it expires: 30d, 12h, 2026-12-31 or a time of RFC 3339", asTime},
	{"rpm", "rpm", "NUMBER", "requests per minute", asMaximum},
	{"daily-max", "dailyMax", "NUMBER", "requests per day", asMaximum},
	{"tpm", "tpm", "NUMBER", "tokens per minute", asMaximum},
	{"max-parallel", "maxParallel", "NUMBER", "requests at a time", asMaximum},
	{"capture-percent", "capturePercent", "NUMBER", "percentage of calls whose prompts and answers are stored", asNumber},
	{"capture-hours", "captureHours", "NUMBER", "hours for which prompts and answers are stored", asNumber},
	allowUnknown,
}

var budgetFields = []field{
	{"name", "name", "NAME", "its name", nil},
	{"limit", "limit", "NUMBER", "new limit, in the unit of the budget", asNumber},
	{"models", "models", "LIST", "count only calls of these models", asList},
	{"tag", "tag", "NAME=VALUE", "count only calls with this tag", nil},
	{"tool", "tool", "TOOL", "count only calls of this tool, such as claude-code", nil},
	{"unpriced", "unpriced", "WORD", "what happens to models without a price", nil},
	{"webhook-url", "webhookUrl", "URL", "address that alerts are sent to", nil},
	allowUnknown,
	{"key", "", "KEY", "key that it limits; the whole machine by default", nil},
}

var comboFields = []field{
	{"name", "name", "NAME", "its name", nil},
	{"models", "models", "LIST", "models in the order in which they are tried", asList},
	{"strategy", "strategy", "WORD", "how a model is chosen", nil},
	{"kind", "kind", "WORD", "kind of its models", nil},
	{"split-by", "splitBy", "WORD", "for weighted, what stays with one model", nil},
	{"weights", "weights", "LIST", "for weighted: MODEL=NUMBER between commas", asWeights},
	allowUnknown,
}

var peopleOps = []op{
	{use: "ls", short: "list people", call: "GET /api/people", columns: personColumns},
	{use: "invite NOTE", short: "print a sign-in link for one person, once; it expires after seven days", long: inviteText,
		call: "POST /api/invitations", args: []string{"note"}, fields: grantFields, run: (*app).invite},
	{use: "invitations", short: "list the open invitations", call: "GET /api/people", member: "invitations", columns: invitationColumns},
	{use: "withdraw ID", short: "withdraw an invitation", call: "DELETE /api/invitations/{}", done: "The invitation %s is withdrawn."},
	{use: "link PERSON", short: "print another sign-in link of a person, this once", call: "POST /api/invitations", run: (*app).renew},
	{use: "set PERSON", short: "set the role of a person, and the limits of a member", long: inviteText, call: "PUT /api/people/{id}",
		fields: grantFields, run: (*app).setPerson},
	{use: "end-sessions PERSON", short: "end the sessions of a person, on every machine", call: "DELETE /api/people/{id}/sessions",
		done: "The sessions of %s have ended."},
	{use: "rm PERSON", short: "remove a person: sessions end and keys are paused at once", call: "DELETE /api/people/{id}", ask: true,
		done: "%s is removed: sessions have ended, keys are paused."},
}

// grantFields are a role, and the template of the keys of a member.
var grantFields = []field{
	{"role", "role", "ROLE", "role, member by default", nil},
	{"budget", "", "LIMIT", "budget of all keys of a member, such as 20/month in USD", nil},
	{"models", "template.models", "LIST", "models that the keys of a member may call", asList},
	{"keys", "template.keys", "NUMBER", "keys that a member may have, 3 by default", asNumber},
	{"days", "template.days", "NUMBER", "days after which a key expires", asNumber},
	{"rpm", "template.rpm", "NUMBER", "requests per minute of each key", asMaximum},
	{"daily-max", "template.dailyMax", "NUMBER", "requests per UTC day of each key", asMaximum},
	{"tpm", "template.tpm", "NUMBER", "tokens per minute of each key", asMaximum},
	{"max-parallel", "template.maxParallel", "NUMBER", "requests at a time of each key", asMaximum},
}

var usageFields = []field{
	{"by", "", "LIST", "what to group by, model by default", nil},
	{"month", "", "MONTH", "one month, such as 2026-11", nil},
	{"from", "?from", "DAY", "first day (UTC), such as 2026-11-01; hours are 2026-11-01T19", nil},
	{"to", "?to", "DAY", "last day", nil},
	{"csv", "", toggle, "print as CSV", nil},
}

var requestFields = []field{
	{"follow,f", "", toggle, "print further requests as they end, until Ctrl-C", nil},
	{"failed", "?failed", toggle, "only requests that failed, or had a failed attempt", nil},
	{"limit,n", "?limit", "NUMBER", "number of requests, 20 by default and at most 200", asRows(200)},
	{"key", "?key", "KEY", "only requests of this key", nil}, {"account", "?connection", "ACCOUNT", "only requests of this account", nil},
	{"model", "?model", "MODEL", "only requests of this model", nil}, {"provider", "?provider", "PROVIDER", "only requests of this provider", nil},
	{"endpoint", "?endpoint", "PATH", "only requests of this path, such as /v1/chat/completions", nil}, {"status", "?status", "STATUS", "only requests with this status", nil},
	{"code", "?code", "CODE", "only requests with this error code", nil}, {"outcome", "?outcome", "OUTCOME", "only requests with this outcome", nil},
	{"reason", "?reason", "REASON", "only requests refused for this reason", nil}, {"tag", "?tag", "TAG", "only requests with this tag", nil}, {"tool", "?tool", "TOOL", "only requests of this tool, such as claude-code", nil}, {"text", "?q", "TEXT", "only requests that contain TEXT", nil},
	{"from", "?from", "TIME", "start: 2h (two hours ago), 2026-11-01 or a time of RFC 3339", asPast}, {"to", "?to", "TIME", "end, likewise", asPast},
	{"csv", "", toggle, "print all requests as CSV", nil},
}

var (
	machineColumns = []column{{title: "NAME", path: "name"}, {title: "ID", path: "machineId"},
		{title: "CREATED", path: "createdAt", show: when, whole: true}}
	deletedColumns = append(machineColumns[:2:2], column{title: "DELETED", path: "deletedAt", show: when, whole: true},
		column{title: "RESTORE UNTIL", path: "restoreUntil", show: when, whole: true})
	accountColumns = []column{{title: "NAME", path: "name"}, {title: "ID", path: "id", extra: true, whole: true},
		{title: "PROVIDER", path: "provider", show: provided}, {title: "STATE", show: accountState},
		{title: "ENDS WITH", path: "last4", extra: true},
		{title: "PRIORITY", path: "priority", right: true, extra: true}, {title: "MONTH", show: spentMonth, right: true},
		{title: "LAST ERROR", show: lastError, extra: true, whole: true}}
	quotaColumns = []column{{title: "NAME", path: "name"}, {title: "PROVIDER", path: "provider", show: provided},
		{title: "LEFT", path: "windows", show: left}}
	providerColumns = []column{{title: "PROVIDER", path: "id", whole: true}, {title: "NAME", path: "name"},
		{title: "CREDENTIAL", path: "auth", show: credential},
		{title: "VARIABLES", path: "vars"}, {title: "KINDS", path: "kinds"},
		{title: "KEYS ARE CREATED AT", path: "keyUrl", extra: true, whole: true}}
	timelineColumns = []column{{title: "ACCOUNT", path: "connectionId", show: named}, {title: "PROVIDER", show: providerOf, extra: true},
		{title: "MODEL", path: "model"}, {title: "STATE", path: "total.state", show: health}, {title: "ATTEMPTS", path: "total.attempts", right: true},
		{title: "FAILED", path: "total.failed", right: true}, {title: "P50", path: "total.latencyP50Ms", show: percentile, right: true},
		{title: "P95", path: "total.latencyP95Ms", show: percentile, right: true}, {title: "CAUSES", path: "total.failedBy", show: counts}}
	outageColumns = []column{{title: "PROVIDER", path: "name"}, {title: "STATE", path: "indicator"}, {title: "DESCRIPTION", path: "description"},
		{title: "INCIDENTS", path: "incidents"}, {title: "PAGE", path: "page"}}
	destinationColumns = []column{{title: "NAME", path: "name"}, {title: "ID", path: "id"}, {title: "KIND", path: "kind"},
		{title: "STATUS", path: "status", show: state}, {title: "HOST", path: "host"}, {title: "LAST SUCCESS", path: "lastSuccessAt", show: when, whole: true},
		{title: "DROPPED", path: "dropped", right: true}, {title: "LAST ERROR", show: lastError}}
	kindColumns     = []column{{title: "KIND", path: "name"}, {title: "TAKES", path: "takes"}, {title: "SETTINGS", path: "fields.#.name", show: words}}
	deliveryColumns = []column{{title: "TIME", path: "at", show: when, whole: true},
		{title: "TYPE", path: "type"}, {title: "STATE", path: "state"},
		{title: "TRIES", path: "tries", right: true}, {title: "TITLE", path: "title"}, {title: "ERROR", path: "error"}}
	modelColumns = []column{{title: "MODEL", path: "id"}, {title: "KIND", path: "kind"}, {title: "CONTEXT", path: "context_length", right: true},
		{title: "MAX OUTPUT", path: "max_completion_tokens", right: true}, {title: "DEPRECATED", path: "deprecated.date"}}
	unavailableColumns = []column{{title: "ACCOUNT", path: "name"}, {title: "PROVIDER", path: "provider", show: provided}, {title: "MODEL", path: "model"},
		{title: "REASON", path: "reason"}, {title: "UNTIL", path: "until", show: when, whole: true}, {title: "LAST ERROR", path: "lastError"}}
	customColumns = []column{{title: "PREFIX", path: "providerAlias"}, {title: "MODEL", path: "id"}, {title: "KIND", path: "type"},
		{title: "NAME", path: "name"}, {title: "CONTEXT", path: "contextLength", right: true}}
	personColumns = []column{{title: "NAME", path: "name"}, {title: "ID", path: "id"}, {title: "E-MAIL", path: "email"},
		{title: "ROLE", path: "role"}, {title: "LAST SEEN", path: "lastSeen", show: when, whole: true}, {title: "SESSIONS", path: "sessions", right: true},
		{title: "BUDGET", path: "template.budgetUsd", show: usd, right: true}}
	invitationColumns = []column{{title: "ID", path: "id"}, {title: "FOR", path: "note"}, {title: "ROLE", path: "role"},
		{title: "EXPIRES", path: "expiresAt", show: when, whole: true}}
	keyColumns = []column{{title: "NAME", path: "name"}, {title: "ID", path: "id", extra: true, whole: true},
		{title: "ENDS WITH", path: "last4", extra: true}, {title: "SCOPES", path: "scopes", extra: true},
		{title: "STATE", show: keyState}, {title: "LAST USE", path: "lastUsedAt", show: when, whole: true},
		{title: "MONTH", show: spentMonth, right: true}, {title: "EXPIRES", path: "expiresAt", show: when, whole: true},
		{title: "MODELS", path: "models"}}
	networkColumns = []column{{title: "NETWORK", path: "network"}, {title: "COUNTRY", path: "country"},
		{title: "FIRST", path: "firstAt", show: when, whole: true}, {title: "LAST", path: "lastAt", show: when, whole: true},
		{title: "REQUESTS", path: "requests", right: true}, {title: "TOOLS", path: "tools"}}
	budgetColumns = []column{{title: "NAME", path: "name"}, {title: "ID", path: "id", extra: true, whole: true},
		{title: "SPENT", show: spent, right: true},
		{title: "LIMIT", show: limit, right: true}, {title: "UNIT", path: "unit"}, {title: "WINDOW", path: "window"},
		{title: "RESETS", path: "resetsAt", show: when, whole: true}, {title: "APPLIES TO", show: appliesTo}}
	comboColumns = []column{{title: "NAME", path: "name"}, {title: "ID", path: "id"}, {title: "STRATEGY", path: "strategy"},
		{title: "KIND", path: "kind"}, {title: "MODELS", path: "models"}}
	captureColumns = []column{{title: "REQUEST", path: "id"},
		{title: "TIME", path: "at", show: when, whole: true}, {title: "KEY", path: "keyId", show: named},
		{title: "BYTES", path: "bytes", right: true}, {title: "UNTIL", path: "expiresAt", show: when, whole: true}}
	idpColumns = []column{{title: "NAME", path: "name"}, {title: "ID", path: "id"}, {title: "KIND", path: "kind"},
		{title: "ISSUER", path: "issuer"}, {title: "CLIENT", path: "clientId"}, {title: "RULES", path: "rules.#", right: true}}
	signInColumns = []column{{title: "TIME", path: "at", show: when, whole: true}, {title: "BY", path: "actor", show: personOf},
		{title: "ACTION", path: "action", show: acted}, {title: "OF", path: "target", show: named}, {title: "DETAILS", path: "fields", show: changed}}
	auditColumns = []column{{title: "TIME", path: "at", show: when, whole: true}, {title: "BY", path: "actor", show: personOf},
		{title: "ACTION", path: "action", show: acted}, {title: "OF", path: "target", show: named}, {title: "FIELDS", path: "fields", show: changed}}
	planColumns = []column{{title: "TRY", path: "try", right: true}, {title: "ACCOUNT", path: "connectionName"},
		{title: "PROVIDER", path: "provider", show: provided},
		{title: "MODEL", path: "model"}, {title: "UPSTREAM", path: "upstream"}, {title: "SKIPPED", path: "skipped"},
		{title: "COOLDOWN", path: "cooldownMs", show: wait, right: true}, {title: "DROPPED", path: "dropped", show: fields(false)},
		{title: "SET", path: "dropped", show: fields(true)}}
	toolColumns  = []column{{title: "TOOL", path: "id"}, {title: "NAME", path: "name"}, {title: "KIND", path: "kind"}, {title: "FILES", path: "files"}}
	usageColumns = []column{{title: "REQUESTS", path: "requests", right: true}, {title: "FAILED", show: failed, right: true},
		{title: "REFUSED", path: "refused", right: true}, {title: "INPUT", show: tokens("inputTokens"), right: true},
		{title: "OUTPUT", show: tokens("outputTokens"), right: true}, {title: "COST", show: cost, right: true}}
	// At 80 columns how a request ended and what it took stay; an id that is cut names nothing.
	requestColumns = []column{{title: "TIME", path: "at", show: clock, min: 8},
		{title: "KEY", path: "keyId", show: named, min: 10}, {title: "MODEL", show: servedModel, min: 24},
		{title: "OUTCOME", path: "outcome", show: outcome, min: 10, extra: true},
		{title: "DURATION", path: "latencyMs", show: seconds, right: true, min: 8, extra: true},
		{title: "COST", show: requestCost, right: true, min: 8, extra: true},
		{title: "STATUS", path: "status", right: true, min: 6, extra: true},
		{title: "ACCOUNT", path: "connectionId", show: named, min: 10, extra: true},
		{title: "INPUT", show: tokens("inputTokens"), right: true, min: 6, extra: true},
		{title: "OUTPUT", show: tokens("outputTokens"), right: true, min: 6, extra: true},
		{title: "ID", path: "id", min: 36, extra: true, whole: true}, {title: "ERROR", path: "error", min: 12}}
)
