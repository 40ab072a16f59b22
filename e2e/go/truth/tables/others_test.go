package tables

func lease() object {
	o := base("coordination.k8s.io/v1", "Lease", true)
	spec := object{}
	put(spec, 80, "holderIdentity", func() any { return one("me", "") })
	o["spec"] = spec
	return o
}

func endpointSlice() object {
	o := base("discovery.k8s.io/v1", "EndpointSlice", true)
	o["addressType"] = one("IPv4", "IPv6", "FQDN")
	put(o, 85, "ports", func() any {
		return some(5, func() object {
			p := object{}
			put(p, 70, "port", func() any { return one(80, 443) })
			put(p, 60, "name", func() any { return one("http", "") })
			return p
		})
	})
	put(o, 85, "endpoints", func() any {
		return some(4, func() object { return object{"addresses": some(2, address)} })
	})
	if o["endpoints"] == nil {
		o["endpoints"] = []any{}
	}
	return o
}

func ingress() object {
	o := base("networking.k8s.io/v1", "Ingress", true)
	spec := object{}
	put(spec, 60, "ingressClassName", func() any { return one("nginx", "") })
	put(spec, 85, "rules", func() any {
		return some(6, func() object {
			r := object{}
			put(r, 80, "host", func() any { return one("a.example.com", "b.example.com", "") })
			return r
		})
	})
	put(spec, 40, "tls", func() any { return some(2, func() object { return object{"secretName": "s"} }) })
	o["spec"] = spec
	put(o, 60, "status", func() any { return object{"loadBalancer": loadBalancer()} })
	return o
}

func ingressClass() object {
	o := base("networking.k8s.io/v1", "IngressClass", false)
	spec := object{"controller": "example.com/c"}
	put(spec, 60, "parameters", func() any {
		p := object{"kind": "Params", "name": word()}
		put(p, 60, "apiGroup", func() any { return one("example.com", "") })
		return p
	})
	o["spec"] = spec
	if chance(40) {
		annotate(o, "ingressclass.kubernetes.io/is-default-class", one("true", "false"))
	}
	return o
}

func networkPolicy() object {
	o := base("networking.k8s.io/v1", "NetworkPolicy", true)
	spec := object{}
	put(spec, 90, "podSelector", selector)
	o["spec"] = spec
	return o
}

func ipAddress() object {
	o := base("networking.k8s.io/v1", "IPAddress", false)
	spec := object{}
	put(spec, 85, "parentRef", func() any {
		p := object{"name": word(), "resource": one("services", "Things")}
		put(p, 50, "group", func() any { return one("Example.com", "") })
		put(p, 70, "namespace", func() any { return one("default", "") })
		return p
	})
	o["spec"] = spec
	return o
}

func serviceCIDR() object {
	o := base("networking.k8s.io/v1", "ServiceCIDR", false)
	o["spec"] = object{"cidrs": some(2, func() string { return one("10.96.0.0/12", "fd00::/112") })}
	return o
}

func binding(kind string, namespaced bool) object {
	o := base("rbac.authorization.k8s.io/v1", kind, namespaced)
	o["roleRef"] = object{"apiGroup": "rbac.authorization.k8s.io", "kind": one("Role", "ClusterRole"), "name": word()}
	put(o, 85, "subjects", func() any {
		return some(5, func() object {
			s := object{"kind": one("User", "Group", "ServiceAccount", "Other"), "name": word()}
			put(s, 50, "namespace", func() any { return "default" })
			return s
		})
	})
	return o
}

func storageClass() object {
	o := base("storage.k8s.io/v1", "StorageClass", false)
	o["provisioner"] = one("example.com/disk", "")
	put(o, 70, "reclaimPolicy", func() any { return one("Delete", "Retain") })
	put(o, 70, "volumeBindingMode", func() any { return one("Immediate", "WaitForFirstConsumer") })
	put(o, 50, "allowVolumeExpansion", func() any { return chance(50) })
	if chance(50) {
		annotate(o, one("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"), one("true", "true", "false"))
	}
	if chance(30) {
		o["metadata"].(object)["creationTimestamp"] = "1999-05-05T05:05:05Z"
	}
	return o
}

func volumeAttachment() object {
	o := base("storage.k8s.io/v1", "VolumeAttachment", false)
	source := object{}
	put(source, 80, "persistentVolumeName", func() any { return "pv-1" })
	o["spec"] = object{"attacher": "example.com/a", "nodeName": one("node-1", ""), "source": source}
	put(o, 70, "status", func() any { return object{"attached": chance(50)} })
	return o
}

func csiDriver() object {
	o := base("storage.k8s.io/v1", "CSIDriver", false)
	spec := object{}
	for _, member := range []string{"attachRequired", "podInfoOnMount", "storageCapacity", "requiresRepublish"} {
		put(spec, 60, member, func() any { return chance(50) })
	}
	put(spec, 60, "tokenRequests", func() any {
		return some(3, func() object { return object{"audience": one("vault", "", "api")} })
	})
	put(spec, 60, "volumeLifecycleModes", func() any {
		return some(2, func() string { return one("Persistent", "Ephemeral") })
	})
	o["spec"] = spec
	return o
}

func csiNode() object {
	o := base("storage.k8s.io/v1", "CSINode", false)
	o["spec"] = object{"drivers": some(3, func() object { return object{"name": word(), "nodeID": "n", "topologyKeys": []string{}} })}
	return o
}

func volumeAttributesClass() object {
	o := base("storage.k8s.io/v1", "VolumeAttributesClass", false)
	o["driverName"] = one("example.com/d", "")
	return o
}

func priorityClass() object {
	o := base("scheduling.k8s.io/v1", "PriorityClass", false)
	put(o, 90, "value", func() any { return one(0, 1000, -5, 2000000000) })
	put(o, 40, "globalDefault", func() any { return chance(50) })
	put(o, 50, "preemptionPolicy", func() any { return one("Never", "PreemptLowerPriority") })
	return o
}

func webhooks(kind string) object {
	o := base("admissionregistration.k8s.io/v1", kind, false)
	put(o, 85, "webhooks", func() any {
		return some(3, func() object {
			return object{"name": word(), "clientConfig": object{}, "sideEffects": "None", "admissionReviewVersions": []string{"v1"}}
		})
	})
	return o
}

func crd() object {
	o := base("apiextensions.k8s.io/v1", "CustomResourceDefinition", false)
	names := object{"kind": "Foo", "plural": "foos"}
	put(names, 60, "shortNames", func() any { return some(3, word) })
	spec := object{"group": "example.com", "scope": one("Cluster", "Namespaced"), "names": names}
	spec["versions"] = some(4, func() object {
		return object{"name": one("v1", "v1beta1", "v2", "v1alpha1"), "served": chance(70), "storage": chance(40)}
	})
	o["spec"] = spec
	put(o, 70, "status", func() any {
		return object{"conditions": some(3, condition("Established", "NamesAccepted")), "acceptedNames": names, "storedVersions": []string{}}
	})
	return o
}
