package tables

import "kube-informer-e2e/truth"

func replicaStatus() any {
	s := object{"replicas": upto(5)}
	for _, member := range []string{"readyReplicas", "updatedReplicas", "availableReplicas", "currentNumberScheduled", "desiredNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable", "numberMisscheduled"} {
		put(s, 70, member, number(9))
	}
	return s
}

func replicationController() object {
	o := base("v1", "ReplicationController", true)
	spec := object{}
	put(spec, 80, "replicas", number(5))
	put(spec, 60, "selector", labelMap)
	put(spec, 90, "template", podTemplate)
	o["spec"] = spec
	put(o, 80, "status", replicaStatus)
	return o
}

func replicas(kind string) object {
	o := base("apps/v1", kind, true)
	spec := object{"template": podTemplate()}
	put(spec, 80, "replicas", number(5))
	put(spec, 95, "selector", selector)
	o["spec"] = spec
	put(o, 80, "status", replicaStatus)
	if kind == "DaemonSet" && chance(50) {
		annotate(o, "deprecated.daemonset.template.generation", "3")
	}
	if kind == "Deployment" && chance(30) {
		annotate(o, "deprecated.deployment.rollback.to", "3")
	}
	return o
}

func controllerRevision() object {
	o := base("apps/v1", "ControllerRevision", true)
	put(o["metadata"].(object), 70, "ownerReferences", func() any {
		return some(3, func() object {
			r := object{"kind": one("DaemonSet", "StatefulSet", "Foo"), "name": word(), "uid": "u", "apiVersion": one("apps/v1", "v1", "example.com/v1", "")}
			put(r, 70, "controller", func() any { return chance(70) })
			return r
		})
	})
	put(o, 90, "revision", number(1000))
	o["data"] = object{"a": 1}
	return o
}

func job() object {
	o := base("batch/v1", "Job", true)
	spec := object{"template": podTemplate()}
	put(spec, 50, "completions", number(5))
	put(spec, 50, "parallelism", number(5))
	put(spec, 70, "selector", selector)
	o["spec"] = spec
	status := object{}
	put(status, 80, "startTime", func() any { return ago() })
	put(status, 50, "completionTime", func() any { return ago() })
	put(status, 70, "succeeded", number(5))
	put(status, 60, "conditions", func() any {
		return some(3, condition("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"))
	})
	put(o, 85, "status", func() any { return status })
	return o
}

func cronJob() object {
	o := base("batch/v1", "CronJob", true)
	jobSpec := object{"template": podTemplate()}
	put(jobSpec, 40, "selector", selector)
	spec := object{"schedule": one("* * * * *", "@daily", ""), "jobTemplate": object{"spec": jobSpec}}
	put(spec, 50, "timeZone", func() any { return one("Etc/UTC", "") })
	put(spec, 60, "suspend", func() any { return chance(50) })
	o["spec"] = spec
	status := object{}
	put(status, 60, "active", func() any { return some(3, func() object { return object{"name": "j"} }) })
	put(status, 60, "lastScheduleTime", func() any { return ago() })
	put(o, 85, "status", func() any { return status })
	return o
}

func podDisruptionBudget() object {
	o := base("policy/v1", "PodDisruptionBudget", true)
	spec := object{}
	put(spec, 50, "minAvailable", func() any { return one[any](1, "50%", 0, "") })
	put(spec, 50, "maxUnavailable", func() any { return one[any](3, "10%") })
	o["spec"] = spec
	put(o, 70, "status", func() any { return object{"disruptionsAllowed": upto(4)} })
	return o
}

func metricTarget() object {
	t := object{"type": one("Utilization", "Value", "AverageValue")}
	put(t, 50, "averageUtilization", number(99))
	put(t, 40, "averageValue", amount)
	put(t, 60, "value", amount)
	return t
}

var sources = map[string]string{"External": "external", "Pods": "pods", "Object": "object", "Resource": "resource", "ContainerResource": "containerResource", "Odd": "odd"}

func metricType() string {
	return one("External", "Pods", "Object", "Resource", "Resource", "ContainerResource")
}

func hpaV2() object {
	o := hpa("autoscaling/v2")
	put(o["spec"].(object), 85, "metrics", func() any {
		return some(4, func() object {
			kind := metricType()
			return object{"type": kind, sources[kind]: object{"name": one("cpu", "memory"), "target": metricTarget()}}
		})
	})
	put(o["status"].(object), 75, "currentMetrics", func() any {
		return some(4, func() object {
			kind := metricType()
			return object{"type": kind, sources[kind]: object{"name": one("cpu", "memory"), "current": metricTarget()}}
		})
	})
	return o
}

func hpa(apiVersion string) object {
	o := base(apiVersion, "HorizontalPodAutoscaler", true)
	spec := object{"scaleTargetRef": object{"kind": one("Deployment", "StatefulSet"), "name": word()}, "maxReplicas": upto(10)}
	put(spec, 70, "minReplicas", number(4))
	o["spec"] = spec
	o["status"] = object{"currentReplicas": upto(9)}
	return o
}

func hpaV1() object {
	o := hpa("autoscaling/v1")
	put(o["spec"].(object), 60, "targetCPUUtilizationPercentage", number(99))
	put(o["status"].(object), 60, "currentCPUUtilizationPercentage", number(99))
	if chance(50) {
		list := some(3, func() object {
			kind := metricType()
			m := object{"name": one("cpu", "memory")}
			for _, member := range []string{"targetValue", "targetAverageValue", "averageValue"} {
				put(m, 50, member, amount)
			}
			put(m, 50, "targetAverageUtilization", number(99))
			if kind == "Object" {
				m["target"] = object{"kind": "x", "name": "y"}
			}
			return object{"type": kind, sources[kind]: m}
		})
		annotate(o, "autoscaling.alpha.kubernetes.io/metrics", string(truth.JSON(list)))
	}
	if chance(50) {
		list := some(3, func() object {
			kind := metricType()
			m := object{"name": one("cpu", "memory")}
			for _, member := range []string{"currentValue", "currentAverageValue", "averageValue"} {
				put(m, 50, member, amount)
			}
			put(m, 50, "currentAverageUtilization", number(99))
			if kind == "Object" {
				m["target"] = object{"kind": "x", "name": "y"}
			}
			return object{"type": kind, sources[kind]: m}
		})
		annotate(o, "autoscaling.alpha.kubernetes.io/current-metrics", string(truth.JSON(list)))
	}
	return o
}

func scale() object {
	o := base("autoscaling/v1", "Scale", true)
	put(o, 80, "spec", func() any { return object{"replicas": upto(5)} })
	put(o, 80, "status", func() any { return object{"replicas": upto(5)} })
	return o
}
