import { KubeClient } from '../../../operator/kube/client.ts';
import { CONFIGMAPS } from '../../../operator/kube/resources.ts';

/** What a stand-in deploys to a cluster: a ConfigMap, by the credentials that the hub was given. */
export class Deployed {
  /** False: the cluster is dead. */
  answers = true;

  apply = (access: Access, name: string): Promise<void> =>
    this.#with(access, async (client) => {
      await client.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' } });
    });

  prune = (access: Access, name: string): Promise<void> =>
    this.#with(access, async (client) => {
      if (await client.getOrUndefined(CONFIGMAPS, name, 'default')) await client.delete(CONFIGMAPS, name, 'default');
    });

  async #with(access: Access, act: (client: KubeClient) => Promise<void>): Promise<void> {
    if (!this.answers) throw new Error('dial tcp: i/o timeout');
    const client = new KubeClient(access);
    try {
      await act(client);
    } finally {
      await client.close();
    }
  }
}

export interface Access {
  readonly server: string;
  readonly ca: string;
  readonly token: string;
}
