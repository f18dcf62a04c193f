package memory

// GivesWay is what a waiting call asks after each attempt in vain.
func (l *Lease) GivesWay() bool { return l.budget.refuses(l) }
