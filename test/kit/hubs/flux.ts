import { KUSTOMIZATIONS } from '../../../operator/hubs/flux.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { parseUntrustedKubeconfig } from '../../../operator/kube/kubeconfig.ts';
import { decodeSecret, type KubeObject, SECRETS, type Secret } from '../../../operator/kube/resources.ts';
import { type Access, Deployed } from './deployed.ts';
import { StandIn } from './stand-in.ts';

const FINALIZER = 'finalizers.fluxcd.io';

interface Kustomization extends KubeObject {
  spec: { kubeConfig: { secretRef: { name: string } } };
}

/**
 * What of Flux's kustomize-controller 1.10 meets its clusters, as its sources say. In its place in tests only. Of note: a Kustomization that
 * is deleted without its Secret ends and leaves behind what it deployed; one with a Secret and a dead cluster never ends.
 */
export class Flux extends StandIn {
  readonly deployed = new Deployed();

  constructor(client: KubeClient) {
    super(client, [SECRETS, KUSTOMIZATIONS]);
  }

  protected override async reconcile(): Promise<void> {
    for (const one of await this.list<Kustomization>(KUSTOMIZATIONS)) {
      try {
        await this.#process(one);
      } catch (error) {
        // The next one is seen to all the same.
        this.failure = error;
      }
    }
  }

  async #process({ metadata, spec }: Kustomization): Promise<void> {
    const { name, namespace, finalizers } = metadata;
    const write = (list: string[] | null) =>
      this.client.mergePatch(KUSTOMIZATIONS, name, namespace, { metadata: { finalizers: list } });
    const access = await this.#access(spec.kubeConfig.secretRef.name, namespace);
    if (metadata.deletionTimestamp) {
      if (access) await this.deployed.prune(access, name);
      await write(null);
      return;
    }
    if (!finalizers?.includes(FINALIZER)) await write([FINALIZER]);
    if (access) await this.deployed.apply(access, name);
  }

  async #access(name: string, namespace: string | undefined): Promise<Access | undefined> {
    const secret = await this.client.getOrUndefined<Secret>(SECRETS, name, namespace);
    const { value } = decodeSecret(secret?.data);
    if (!value) return undefined;
    const { server, ca = '', token = '' } = parseUntrustedKubeconfig(value);
    return { server, ca: String(ca), token };
  }
}

/** One that deploys to the cluster whose kubeconfig is in this Secret. */
export const kustomization = (name: string, namespace: string, secret: string): KubeObject => ({
  apiVersion: 'kustomize.toolkit.fluxcd.io/v1',
  kind: 'Kustomization',
  metadata: { name, namespace },
  spec: {
    interval: '10m',
    prune: true,
    sourceRef: { kind: 'GitRepository', name: 'shop' },
    path: './web',
    kubeConfig: { secretRef: { name: secret } },
  },
});
