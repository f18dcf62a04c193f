package rpc

// Operations of the registry for the public status pages of providers:
//
//	feeds.take FeedsQuery  200 FeedsTaken
//	feeds.put  Feeds       200 {}

// FeedEvery is how often a status page is read, in milliseconds: by one caller for all
// machines and instances of the gateway.
const FeedEvery = 5 * 60 * 1000

// Bounds of the calls and of a Feed.
const (
	MaxFeeds     = 64
	MaxFeedText  = 200 // bytes
	MaxIncidents = 3
)

// Feed is what a provider's public status page said.
type Feed struct {
	Provider string `json:"provider"`
	ReadAt   int64  `json:"readAt,omitempty"` // Unix milliseconds; 0 if it was never read
	// Indicator has one of these values: none, minor, major, critical, maintenance. It is ""
	// if the page could not be read.
	Indicator   string   `json:"indicator,omitempty"`
	Description string   `json:"description,omitempty"` // "Partial System Outage"
	Incidents   []string `json:"incidents,omitempty"`   // names of those that are not resolved
}

// Feeds is the body of "feeds.put".
type Feeds struct {
	Feeds []Feed `json:"feeds"`
}

// FeedsQuery is the body of "feeds.take": ids of providers with a status page.
type FeedsQuery struct {
	Providers []string `json:"providers"`
}

// FeedsTaken has what is stored of the status pages. The caller reads those of Due now; no
// other caller is told to within FeedEvery.
type FeedsTaken struct {
	Feeds []Feed   `json:"feeds"`
	Due   []string `json:"due,omitempty"`
}
