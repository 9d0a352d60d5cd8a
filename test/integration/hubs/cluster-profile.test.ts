import { CLUSTER_INVENTORY } from '../../../operator/garden/daemon/inventory.ts';
import { CLUSTERPROFILES } from '../../../operator/hubs/cluster-profile.ts';
import { keepsMembers } from '../../kit/conformance/hubs.ts';
import { HubTestbed } from '../../kit/hubs/hub-testbed.ts';

// The garden is the hub: all of it with the rights that the chart gives the operator, and no more.
keepsMembers({
  type: 'ClusterProfile',
  open: () => HubTestbed.start({ type: 'ClusterProfile' }, [CLUSTER_INVENTORY], 'chart'),
  kinds: [CLUSTERPROFILES],
  // Each embedded garden pays this for each of its clusters.
  costs: { join: 10, leave: 7 },
  shows: '/clusterprofiles/shop--demo',
  taken: {
    resource: CLUSTERPROFILES,
    object: {
      apiVersion: 'multicluster.x-k8s.io/v1alpha1',
      kind: 'ClusterProfile',
      metadata: { name: 'shop--demo', namespace: 'shop' },
      spec: { clusterManager: { name: 'somebody' } },
    },
  },
  theirs: ({ id }) => {
    const object = {
      apiVersion: 'multicluster.x-k8s.io/v1alpha1',
      kind: 'ClusterProfile',
      metadata: { name: 'theirs', namespace: 'shop' },
      spec: { clusterManager: { name: 'coppice' } },
      status: { properties: [{ name: 'id.k8s.io', value: id }] },
    };
    return { name: 'theirs', objects: [{ resource: CLUSTERPROFILES, object }] };
  },
});
