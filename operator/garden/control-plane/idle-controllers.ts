import { GROUP } from '../../api/group.ts';
import { warningPolicy } from '../../api/refusing-policy.ts';
import type { KubeObject } from '../../kube/resources.ts';

/** Controllers that a garden does not need: nothing here is scaled by metrics, expanded or routed by a cloud. */
export const IDLE_CONTROLLERS = [
  'horizontal-pod-autoscaler-controller',
  'node-route-controller',
  'node-ipam-controller',
  'cloud-node-lifecycle-controller',
  'service-lb-controller',
  'cronjob-controller',
  'legacy-serviceaccount-token-cleaner-controller',
  'persistentvolume-attach-detach-controller',
  'persistentvolume-expander-controller',
  'resourceclaim-controller',
  'device-taint-eviction-controller',
  'storageversion-garbage-collector-controller',
  'storage-version-migrator-controller',
  'volumeattributesclass-protection-controller',
  'endpointslice-mirroring-controller',
];

const rule = (apiGroup: string, resource: string) => ({
  apiGroups: [apiGroup],
  apiVersions: ['*'],
  operations: ['CREATE'],
  resources: [resource],
});

/** Admission warning for kinds without a controller here: the API server accepts them, and nothing acts on them. */
export const idleWarnings = (): KubeObject[] =>
  warningPolicy(`without-controller.${GROUP}`, {
    matchConstraints: {
      resourceRules: [rule('autoscaling', 'horizontalpodautoscalers'), rule('batch', 'cronjobs'), rule('', 'services')],
    },
    validations: [
      {
        expression: "request.resource.resource != 'horizontalpodautoscalers'",
        message:
          'nothing happens: the embedded garden has no metrics and no HPA controller. Use pools[].autoscale: Coppice, or a garden in a cluster with metrics',
      },
      {
        expression: "request.resource.resource != 'cronjobs'",
        message:
          'nothing happens: the embedded garden runs no CronJobs. Make it in one of its clusters, or use spec.hibernation.schedules',
      },
      {
        expression:
          "request.resource.resource != 'services' || !has(object.spec.type) || object.spec.type != 'LoadBalancer'",
        message: 'nothing happens: the embedded garden has no load balancers',
      },
    ],
  });
