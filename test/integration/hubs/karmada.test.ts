import { CLUSTERS } from '../../../operator/hubs/karmada-cluster.ts';
import { keepsMembers } from '../../kit/conformance/hubs.ts';
import { HubScene } from '../../kit/hubs/hub-scene.ts';
import { KarmadaStandIn } from '../../kit/hubs/karmada-stand-in.ts';

const open = async (): Promise<HubScene> => {
  const scene = await HubScene.start({ type: 'Karmada', karmada: { renewsTokens: true } }, ['karmada']);
  const standIn = new KarmadaStandIn(scene.garden.client, scene.member.client);
  await standIn.start();
  scene.onStop(() => standIn.stop());
  return scene;
};

keepsMembers({
  type: 'Karmada',
  open,
  kinds: [CLUSTERS],
  taken: {
    resource: CLUSTERS,
    object: {
      apiVersion: 'cluster.karmada.io/v1alpha1',
      kind: 'Cluster',
      metadata: { name: 'shop--demo' },
      spec: { syncMode: 'Pull' },
    },
  },
});
