//go:build tools

// Package tools imports the programs that are built from this module unchanged, so that go.mod pins them.
package tools

import (
	_ "go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
