module weir/test/clients

go 1.26.0

ignore ./cli/node_modules

require (
	github.com/openai/openai-go/v3 v3.95.0
	github.com/tidwall/gjson v1.20.0
	weir v0.0.0
)

require (
	github.com/coder/websocket v1.8.15 // indirect
	github.com/josharian/intern v1.0.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/mailru/easyjson v0.9.2 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace weir => ../..
