import { setTimeout as sleep } from 'node:timers/promises';
import { API_VERSION } from '../../operator/api/group.ts';
import { KUBECONFIG_KEY, kubeconfigSecretName, technicalID } from '../../operator/api/names.ts';
import type { Seed } from '../../operator/api/seed.ts';
import type { Shoot } from '../../operator/api/shoot.ts';
import { applyKinds, applyObjects, foreignSeed } from '../../operator/garden/daemon/manifests.ts';
import type { KubeClient } from '../../operator/kube/client.ts';
import { Informer } from '../../operator/kube/informer.ts';
import { silent } from '../../operator/kube/log.ts';
import { Registry } from '../../operator/kube/metrics.ts';
import { SECRETS, SEEDS, SERVICES, type Secret, type Service, SHOOTS } from '../../operator/kube/resources.ts';
import { type Operator, startOperator } from '../../operator/operator.ts';
import { local } from '../../providers/local/index.ts';
import { startApiserver, type TestApiserver } from './apiserver.ts';
import { PATIENCE_MS } from './garden.ts';

/**
 * A garden of its own, with an operator that takes local machines for machines in a cloud: outside of the seed, which is another
 * garden's and has load balancers. What hosted clusters are told and made of is then what it is for machines in a cloud.
 */
export class OutsideGarden {
  readonly #server: TestApiserver;
  readonly #operator: Operator;
  readonly #stopping: AbortController;
  readonly #shoots: Informer<Shoot>;
  readonly #balancers: Informer<Service>;

  private constructor(
    server: TestApiserver,
    operator: Operator,
    stopping: AbortController,
    shoots: Informer<Shoot>,
    balancers: Informer<Service>,
  ) {
    this.#server = server;
    this.#operator = operator;
    this.#stopping = stopping;
    this.#shoots = shoots;
    this.#balancers = balancers;
  }

  /** @param seed administrator of the garden that is the seed, and its kubeconfig */
  static async start(seed: KubeClient, kubeconfig: string): Promise<OutsideGarden> {
    const server = await startApiserver();
    const stopping = new AbortController();
    const { spec } = await seed.get<Seed>(SEEDS, 'local');
    const objects = foreignSeed(kubeconfig, { pods: spec.networks.pods!, services: spec.networks.services! });
    for (const object of objects.filter(({ kind }) => kind === 'Seed')) {
      const { machineImage: _, ...rest } = object.spec;
      object.spec = { ...rest, provider: spec.provider, exposure: { type: 'LoadBalancer' } };
    }
    await applyKinds(server.client, objects);
    await applyObjects(server.client, objects);
    const balancers = balanceLoad(seed);
    const shoots = new Informer<Shoot>(server.client, SHOOTS);
    shoots.start();
    const operator = await startOperator(
      {
        garden: server.connect(),
        log: silent,
        metrics: new Registry(),
        provider: ({ spec }) => (spec.type === 'local' ? { ...local, inCloud: true } : undefined),
        state: { namespace: 'default', directory: undefined },
      },
      stopping.signal,
    );
    return new OutsideGarden(server, operator, stopping, shoots, balancers);
  }

  /** A hosted cluster with one pool of one machine. */
  async apply(name: string, { replicas }: { replicas: 1 | 3 }): Promise<void> {
    await this.#server.client.apply({
      apiVersion: API_VERSION,
      kind: 'Shoot',
      metadata: { name, namespace: 'default' },
      spec: {
        cloudProfile: { name: 'local' },
        region: 'local',
        controlPlane: { replicas },
        provider: {
          type: 'local',
          workers: [{ name: 'workers', machine: { type: 'local' }, minimum: 1, maximum: 1 }],
        },
      },
    });
  }

  /** Waits, on events, until the predicate holds of the Shoot (undefined when it does not exist). */
  until<R>(name: string, predicate: (shoot: Shoot | undefined) => R | undefined | false, what: string): Promise<R> {
    const found = () => this.#shoots.get(`default/${name}`);
    return this.#shoots.waitFor(() => predicate(found()), {
      timeoutMs: PATIENCE_MS,
      what: () => `Shoot ${name} ${what}; its status is ${JSON.stringify(found()?.status, undefined, 1)}`,
    });
  }

  /** The administrator's kubeconfig. */
  async kubeconfig(name: string): Promise<string> {
    const secret = await this.#server.client.get<Secret>(SECRETS, kubeconfigSecretName(name), 'default');
    return Buffer.from(secret.data?.[KUBECONFIG_KEY] ?? '', 'base64').toString();
  }

  seedNamespace = (name: string): string => technicalID('default', name);

  async delete(name: string): Promise<void> {
    await this.#server.client.delete(SHOOTS, name, 'default');
    await this.until(name, (shoot) => shoot === undefined, 'to be gone');
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#operator.stop();
    await Promise.all([this.#shoots.stop(), this.#balancers.stop()]);
    await this.#server.stop();
  }
}

/** What a cloud's controller does for Services of type LoadBalancer. The address is the ClusterIP, to which this machine has a route. */
function balanceLoad(seed: KubeClient): Informer<Service> {
  const services = new Informer<Service>(seed, SERVICES);
  services.onChange(({ object }) => {
    const { metadata, spec, status } = object as Service;
    const isServed = (status?.loadBalancer?.ingress ?? []).length > 0;
    if (spec.type !== 'LoadBalancer' || isServed || metadata.deletionTimestamp) return;
    void (async () => {
      const address = { status: { loadBalancer: { ingress: [{ ip: spec.clusterIP }] } } };
      for (let tries = 0; tries < 5; tries++) {
        try {
          await seed.mergePatch(SERVICES, metadata.name, metadata.namespace, address, { subresource: 'status' });
          return;
        } catch {
          await sleep(200);
        }
      }
    })();
  });
  services.start();
  return services;
}
