package tables

func conditions(types ...string) any {
	return some(3, func() object {
		c := object{"type": one(types...), "status": one("True", "False", "Unknown")}
		put(c, 50, "reason", func() any { return one("Because", "") })
		return c
	})
}

func admissionPolicy() object {
	o := base("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", false)
	spec := object{}
	put(spec, 50, "paramKind", func() any { return object{"apiVersion": "v1", "kind": "ConfigMap"} })
	put(spec, 70, "validations", func() any { return some(3, func() object { return object{"expression": "true"} }) })
	o["spec"] = spec
	return o
}

func admissionPolicyBinding() object {
	o := base("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", false)
	spec := object{"policyName": word()}
	put(spec, 70, "paramRef", func() any {
		p := object{}
		put(p, 80, "name", func() any { return one(word(), "") })
		put(p, 40, "namespace", func() any { return "default" })
		return p
	})
	o["spec"] = spec
	return o
}

func apiService() object {
	o := base("apiregistration.k8s.io/v1", "APIService", false)
	spec := object{"group": "example.com", "version": "v1"}
	put(spec, 60, "service", func() any { return object{"namespace": "default", "name": word()} })
	o["spec"] = spec
	put(o, 80, "status", func() any { return object{"conditions": conditions("Available", "Other")} })
	return o
}

func signingRequest() object {
	o := base("certificates.k8s.io/v1", "CertificateSigningRequest", false)
	spec := object{"request": "LS0t", "username": word()}
	put(spec, 80, "signerName", func() any { return one("example.com/signer", "") })
	put(spec, 60, "expirationSeconds", func() any { return one(600, 3600, 90000, 31536000) })
	o["spec"] = spec
	status := object{"conditions": conditions("Approved", "Denied", "Failed")}
	put(status, 40, "certificate", func() any { return one("LS0t", "") })
	put(o, 80, "status", func() any { return status })
	return o
}

func flowSchema() object {
	o := base("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", false)
	spec := object{"priorityLevelConfiguration": object{"name": word()}}
	put(spec, 50, "matchingPrecedence", func() any { return one(1, 500, 10000) })
	put(spec, 50, "distinguisherMethod", func() any { return object{"type": one("ByUser", "ByNamespace")} })
	o["spec"] = spec
	put(o, 60, "status", func() any { return object{"conditions": conditions("Dangling", "Other")} })
	return o
}

func priorityLevel() object {
	o := base("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", false)
	spec := object{"type": one("Limited", "Exempt")}
	put(spec, 70, "limited", func() any {
		limited, response := object{}, object{"type": one("Queue", "Reject")}
		put(limited, 60, "nominalConcurrencyShares", func() any { return one(0, 5, 30) })
		put(response, 60, "queuing", func() any {
			q := object{}
			put(q, 60, "queues", func() any { return one(1, 64) })
			put(q, 60, "handSize", func() any { return one(1, 8) })
			return q
		})
		limited["limitResponse"] = response
		return limited
	})
	o["spec"] = spec
	return o
}

func runtimeClass() object {
	o := base("node.k8s.io/v1", "RuntimeClass", false)
	o["handler"] = one("runc", "runsc", "")
	return o
}

func resourceClaim() object {
	o := base("resource.k8s.io/v1", "ResourceClaim", true)
	o["spec"] = object{}
	status := object{}
	put(status, 50, "allocation", func() any { return object{} })
	put(status, 50, "reservedFor", func() any {
		return some(2, func() object { return object{"resource": "pods", "name": word(), "uid": "u"} })
	})
	put(o, 80, "status", func() any { return status })
	return o
}

func resourceSlice() object {
	o := base("resource.k8s.io/v1", "ResourceSlice", false)
	spec := object{"driver": one("gpu.example.com", ""), "pool": object{"name": word(), "generation": 1, "resourceSliceCount": 1}}
	put(spec, 70, "nodeName", func() any { return one("node-1", "") })
	o["spec"] = spec
	return o
}
