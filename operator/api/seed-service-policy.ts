import { GROUP } from './group.ts';
import type { KubeObject } from './meta.ts';
import { refusing } from './refusing-policy.ts';

/**
 * Refuses Services with `externalIPs` in a garden that is also a seed: kube-proxy of every node sends what goes to such an address and port
 * to pods of the Service, whosever address it is (CVE-2020-8554). A tenant would take the traffic of control planes, of the API server or
 * of a registry. As Kubernetes' DenyServiceExternalIPs, which an embedded garden has, it allows addresses that the Service already has; a
 * chart cannot switch that one on.
 * @param sparedNamespaces list of namespaces in CEL (or what Helm makes one of) whose Services may have such addresses
 */
export function seedServices(sparedNamespaces: string): KubeObject[] {
  return refusing(`seed-services.${GROUP}`, {
    matchConstraints: {
      resourceRules: [
        { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: ['services'] },
      ],
    },
    matchConditions: [{ name: 'namespace-is-not-spared', expression: `!(request.namespace in ${sparedNamespaces})` }],
    validations: [
      {
        expression:
          '!has(object.spec.externalIPs) || object.spec.externalIPs.all(ip, oldObject != null && has(oldObject.spec.externalIPs) && ip in oldObject.spec.externalIPs)',
        messageExpression:
          "'Service ' + object.metadata.name + ' may have no new spec.externalIPs: this cluster hosts control planes, and all its nodes would send their traffic to it. The platform team may spare namespace ' + object.metadata.namespace",
        message: 'a Service may have no new spec.externalIPs in a cluster that hosts control planes',
        reason: 'Forbidden',
      },
    ],
  });
}
