// Package helm tests the chart of deploy/helm/weir. It is a module of its own, so that the
// libraries of Helm and Kubernetes are no dependencies of the program.
package helm
