//go:build tools

// Package tools names what is built from this module as it is, so that go.mod pins it.
package tools

import (
	_ "go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
