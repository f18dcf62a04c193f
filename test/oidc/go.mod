module weir/test/oidc

go 1.26.0

require (
	github.com/go-jose/go-jose/v4 v4.1.9
	weir v0.0.0
)

require (
	github.com/tidwall/gjson v1.20.0 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.0 // indirect
)

replace weir => ../..
