//go:build tools

// Package tools names what is built from this module as it is, so that go.mod pins it.
package tools

import _ "k8s.io/sample-controller"
