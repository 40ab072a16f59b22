package tables

import "fmt"

func terminated() object {
	t := object{"exitCode": one(0, 0, 1, 137)}
	put(t, 50, "reason", func() any { return one("Completed", "Error", "OOMKilled", "") })
	put(t, 30, "signal", func() any { return one(0, 9, 15) })
	put(t, 70, "finishedAt", func() any { return ago() })
	return t
}

func containerState() object {
	switch random.Intn(4) {
	case 0:
		return object{"terminated": terminated()}
	case 1:
		return object{"waiting": object{"reason": one("", "PodInitializing", "CrashLoopBackOff", "ContainerCreating")}}
	case 2:
		return object{}
	}
	return object{"running": object{"startedAt": ago()}}
}

func containerStatus(name string) object {
	s := object{"name": name, "restartCount": one(0, 0, 1, 3, 12), "ready": chance(60), "image": "x", "imageID": "y"}
	put(s, 95, "state", func() any { return containerState() })
	put(s, 40, "lastState", func() any { return object{"terminated": terminated()} })
	put(s, 50, "started", func() any { return chance(60) })
	return s
}

func pod() object {
	o := base("v1", "Pod", true)
	spec := object{}
	var names []string
	spec["containers"] = some(3, func() object {
		names = append(names, fmt.Sprintf("c%d", len(names)))
		return object{"name": names[len(names)-1], "image": "nginx"}
	})
	var initNames []string
	if chance(50) {
		spec["initContainers"] = some(3, func() object {
			initNames = append(initNames, fmt.Sprintf("i%d", len(initNames)))
			c := object{"name": initNames[len(initNames)-1], "image": "nginx"}
			put(c, 40, "restartPolicy", func() any { return "Always" })
			return c
		})
	}
	put(spec, 60, "nodeName", func() any { return one("node-1", "node-2", "") })
	put(spec, 30, "readinessGates", func() any {
		return some(3, func() object { return object{"conditionType": one("g1", "g2", "Ready")} })
	})
	o["spec"] = spec
	status := object{}
	put(status, 95, "phase", func() any { return one("Pending", "Running", "Running", "Succeeded", "Failed", "Unknown") })
	put(status, 20, "reason", func() any { return one("NodeLost", "Evicted", "") })
	put(status, 70, "conditions", func() any {
		return some(5, condition("PodScheduled", "Initialized", "Ready", "ContainersReady", "g1", "g2"))
	})
	put(status, 50, "podIP", func() any { return one("10.0.0.1", "") })
	put(status, 50, "podIPs", func() any { return some(2, func() object { return object{"ip": address()} }) })
	put(status, 20, "nominatedNodeName", func() any { return one("node-9", "") })
	put(status, 85, "containerStatuses", func() any {
		var list []object
		for _, name := range names {
			list = append(list, containerStatus(name))
		}
		return list
	})
	put(status, 85, "initContainerStatuses", func() any {
		var list []object
		for _, name := range initNames {
			s := containerStatus(name)
			// Most conditions are true, so that later ones matter.
			if chance(60) {
				s["state"] = object{"terminated": object{"exitCode": 0}}
			}
			list = append(list, s)
		}
		return list
	})
	put(o, 95, "status", func() any { return status })
	return o
}

func namespace() object {
	o := base("v1", "Namespace", false)
	put(o, 70, "status", func() any { return object{"phase": one("Active", "Terminating", "")} })
	return o
}

func node() object {
	o := base("v1", "Node", false)
	labels := object{}
	for i := upto(4); i > 0; i-- {
		labels[one("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/worker", "node-role.kubernetes.io/", "kubernetes.io/role", "zone")] = one("", "edge", "worker")
	}
	put(o["metadata"].(object), 80, "labels", func() any { return labels })
	put(o, 80, "spec", func() any { return object{"unschedulable": chance(30)} })
	status := object{}
	put(status, 80, "conditions", func() any { return some(4, condition("Ready", "MemoryPressure", "Ready")) })
	put(status, 80, "addresses", func() any {
		return some(4, func() object {
			return object{"type": one("InternalIP", "ExternalIP", "Hostname"), "address": address()}
		})
	})
	info := object{}
	for _, member := range []string{"kubeletVersion", "osImage", "kernelVersion", "containerRuntimeVersion", "architecture"} {
		put(info, 80, member, func() any { return one("v1.37.1", "Debian", "6.1.0", "containerd://2", "amd64", "") })
	}
	status["nodeInfo"] = info
	o["status"] = status
	return o
}

func configMap() object {
	o := base("v1", "ConfigMap", true)
	put(o, 80, "data", labelMap)
	put(o, 40, "binaryData", func() any { return object{"b1": "AAAA", "b2": ""} })
	return o
}

func secret() object {
	o := base("v1", "Secret", true)
	put(o, 80, "type", func() any { return one("Opaque", "kubernetes.io/tls", "") })
	put(o, 80, "data", func() any {
		data := object{}
		for i := upto(4); i > 0; i-- {
			data[word()] = "AAAA"
		}
		return data
	})
	return o
}

func service() object {
	o := base("v1", "Service", true)
	spec := object{}
	put(spec, 90, "type", func() any { return one("ClusterIP", "NodePort", "LoadBalancer", "LoadBalancer", "ExternalName", "") })
	if chance(80) {
		ip := one("10.96.0.1", "None", "fd00::5")
		spec["clusterIP"], spec["clusterIPs"] = ip, []string{ip}
	}
	put(spec, 40, "externalIPs", func() any { return some(3, address) })
	put(spec, 40, "externalName", func() any { return "db.example.com" })
	put(spec, 80, "ports", func() any {
		return some(3, func() object {
			p := object{"port": one(80, 443, 8080)}
			put(p, 40, "nodePort", func() any { return one(0, 30080) })
			put(p, 70, "protocol", func() any { return one("TCP", "UDP", "SCTP") })
			return p
		})
	})
	put(spec, 60, "selector", labelMap)
	o["spec"] = spec
	put(o, 60, "status", func() any { return object{"loadBalancer": loadBalancer()} })
	return o
}

func loadBalancer() object {
	return object{"ingress": some(4, func() object {
		i := object{}
		put(i, 60, "ip", func() any { return address() })
		put(i, 60, "hostname", func() any { return one("lb-1.example.com", "lb-2.example.com") })
		return i
	})}
}

func endpoints() object {
	o := base("v1", "Endpoints", true)
	put(o, 90, "subsets", func() any {
		return some(3, func() object {
			s := object{"addresses": some(3, func() object { return object{"ip": address()} })}
			put(s, 80, "ports", func() any {
				return some(3, func() object { return object{"port": one(80, 443), "name": word()} })
			})
			return s
		})
	})
	return o
}

func reference() any {
	r := object{}
	put(r, 90, "kind", func() any { return one("Pod", "ReplicaSet", "Node") })
	put(r, 90, "name", func() any { return word() })
	put(r, 40, "fieldPath", func() any { return "spec.containers{web}" })
	return r
}

func source() any {
	s := object{}
	put(s, 60, "component", func() any { return one("kubelet", "") })
	put(s, 50, "host", func() any { return one("node-1", "") })
	return s
}

func series() any {
	s := object{"count": one(0, 2, 7)}
	put(s, 90, "lastObservedTime", func() any { return microAgo() })
	return s
}

func event() object {
	o := base("v1", "Event", true)
	o["involvedObject"] = reference()
	put(o, 80, "source", source)
	put(o, 70, "firstTimestamp", func() any { return ago() })
	put(o, 70, "lastTimestamp", func() any { return ago() })
	put(o, 70, "count", func() any { return one(0, 1, 5) })
	put(o, 80, "message", func() any { return one("Started", "  spaced\n", "a\tb", "") })
	put(o, 40, "reportingComponent", func() any { return "controller" })
	eventRest(o)
	return o
}

func eventRest(o object) {
	put(o, 90, "type", func() any { return one("Normal", "Warning") })
	put(o, 90, "reason", func() any { return "Started" })
	put(o, 40, "eventTime", func() any { return microAgo() })
	put(o, 40, "series", series)
	put(o, 40, "reportingInstance", func() any { return one("instance-1", "") })
}

func newEvent() object {
	o := base("events.k8s.io/v1", "Event", true)
	put(o, 90, "regarding", reference)
	put(o, 60, "deprecatedSource", source)
	put(o, 40, "deprecatedFirstTimestamp", func() any { return ago() })
	put(o, 40, "deprecatedLastTimestamp", func() any { return ago() })
	put(o, 40, "deprecatedCount", func() any { return one(0, 1, 5) })
	put(o, 80, "note", func() any { return one("Started", "  spaced\n", "") })
	put(o, 60, "reportingController", func() any { return "controller" })
	eventRest(o)
	return o
}

func resourceMap() any {
	m := object{}
	for i := upto(5); i > 0; i-- {
		m[one("cpu", "memory", "limits.cpu", "limits.memory", "pods", "requests.storage", "limits", "count/jobs.batch")] = amount()
	}
	return m
}

func resourceQuota() object {
	o := base("v1", "ResourceQuota", true)
	status := object{}
	put(status, 90, "hard", resourceMap)
	put(status, 70, "used", resourceMap)
	put(o, 90, "status", func() any { return status })
	return o
}

func modes() any {
	return some(4, func() string {
		return one("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
	})
}

func capacity() any {
	c := object{}
	put(c, 85, "storage", amount)
	return c
}

func volumeRest(o, spec object) {
	put(spec, 60, "storageClassName", func() any { return one("fast", "") })
	put(spec, 30, "volumeAttributesClassName", func() any { return one("gold", "") })
	put(spec, 60, "volumeMode", func() any { return one("Block", "Filesystem") })
	if chance(20) {
		annotate(o, "volume.beta.kubernetes.io/storage-class", one("beta", ""))
	}
	o["spec"] = spec
}

func persistentVolume() object {
	o := base("v1", "PersistentVolume", false)
	spec := object{"hostPath": object{"path": "/x"}}
	put(spec, 90, "capacity", capacity)
	put(spec, 80, "accessModes", modes)
	put(spec, 70, "persistentVolumeReclaimPolicy", func() any { return one("Retain", "Delete", "Recycle", "") })
	put(spec, 50, "claimRef", func() any { return reference() })
	volumeRest(o, spec)
	status := object{}
	put(status, 80, "phase", func() any { return one("Available", "Bound", "Released", "Failed", "") })
	put(status, 30, "reason", func() any { return "Broken" })
	put(o, 80, "status", func() any { return status })
	return o
}

func persistentVolumeClaim() object {
	o := base("v1", "PersistentVolumeClaim", true)
	spec := object{"resources": object{"requests": capacity()}}
	put(spec, 60, "volumeName", func() any { return one("pv-1", "") })
	volumeRest(o, spec)
	status := object{}
	put(status, 80, "phase", func() any { return one("Bound", "Pending", "Lost", "") })
	put(status, 80, "capacity", capacity)
	put(status, 80, "accessModes", modes)
	put(o, 80, "status", func() any { return status })
	return o
}

func podTemplateObject() object {
	o := base("v1", "PodTemplate", true)
	put(o, 95, "template", podTemplate)
	return o
}
