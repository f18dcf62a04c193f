// What the Go program is told of an operation; the same numbers stand in bridge/ops.go.
export const OK = 0,
  NETWORK = 1,
  TIMEOUT = 2,
  CANCELED = 3,
  TOO_LARGE = 4,
  END = 5,
  NO_TLS = 6,
  BUDGET = 7,
  IDLE = 8,
  LATE = 9;
