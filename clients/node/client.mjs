// The official client for Node: typed and custom objects, patches, watches, informers, errors. Prints a line for each check.

import * as k8s from '@kubernetes/client-node';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const [group, version, plural, namespace] = ['shop.example.com', 'v1', 'spoons', 'default'];
const folder = mkdtempSync(join(tmpdir(), 'node-client-'));
const server = spawn(process.env.STANCHION, ['server', '--in-memory', '--data-dir', folder, '--listen', '127.0.0.1:0'], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
for await (const line of createInterface({ input: server.stdout })) {
  if (line.startsWith('export KUBECONFIG=')) break;
}

const config = new k8s.KubeConfig();
config.loadFromFile(join(folder, 'admin.kubeconfig'));
const core = config.makeApiClient(k8s.CoreV1Api);
const apps = config.makeApiClient(k8s.AppsV1Api);
const custom = config.makeApiClient(k8s.CustomObjectsApi);
const definitions = config.makeApiClient(k8s.ApiextensionsV1Api);
const objects = k8s.KubernetesObjectApi.makeApiClient(config);

let [passed, failed] = [0, 0];
async function check(name, work) {
  try {
    await work();
    passed += 1;
    console.log(`ok - ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`not ok - ${name}\n    ${String(error.stack ?? error).replaceAll('\n', '\n    ')}`);
  }
}

/** Waits until the condition holds, ten seconds at most. */
async function soon(condition) {
  for (let i = 0; i < 200; i += 1) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('it never came to be so');
}

const map = (name, data) => ({ metadata: { name, labels: { app: 'node' } }, data });

await check('the version', async () => {
  const { minor } = await config.makeApiClient(k8s.VersionApi).getCode();
  assert.equal(minor, '33');
});

await check('typed objects are made, read, replaced and listed', async () => {
  const made = await core.createNamespacedConfigMap({ namespace, body: map('one', { a: '1' }) });
  assert.ok(made.metadata.creationTimestamp instanceof Date);
  made.data.b = '2';
  const replaced = await core.replaceNamespacedConfigMap({ namespace, name: 'one', body: made });
  assert.deepEqual(replaced.data, { a: '1', b: '2' });
  const { items } = await core.listNamespacedConfigMap({ namespace, labelSelector: 'app=node' });
  assert.deepEqual(items.map((i) => i.metadata.name), ['one']);
});

await check('a stale write conflicts', async () => {
  const body = map('one', { a: '3' });
  body.metadata.resourceVersion = '1';
  const wrote = core.replaceNamespacedConfigMap({ namespace, name: 'one', body });
  await assert.rejects(wrote, (e) => e.code === 409 && JSON.parse(e.body).reason === 'Conflict');
});

await check('what is not there is an error', async () => {
  const read = core.readNamespacedConfigMap({ namespace, name: 'none' });
  await assert.rejects(read, (e) => e.code === 404 && JSON.parse(e.body).message === 'configmaps "none" not found');
});

await check('patches of each type', async () => {
  const patch = (body, type) =>
    core.patchNamespacedConfigMap({ namespace, name: 'one', body }, k8s.setHeaderOptions('Content-Type', type));
  const json = await patch([{ op: 'replace', path: '/data/a', value: '4' }], k8s.PatchStrategy.JsonPatch);
  assert.equal(json.data.a, '4');
  const merged = await patch({ data: { b: null, c: '5' } }, k8s.PatchStrategy.MergePatch);
  assert.deepEqual(merged.data, { a: '4', c: '5' });
  const strategic = await patch({ metadata: { labels: { more: 'yes' } } }, k8s.PatchStrategy.StrategicMergePatch);
  assert.deepEqual(strategic.metadata.labels, { app: 'node', more: 'yes' });
});

await check('a deployment and its scale', async () => {
  const template = { metadata: { labels: { app: 'd' } }, spec: { containers: [{ name: 'c', image: 'i' }] } };
  const spec = { selector: { matchLabels: { app: 'd' } }, template };
  await apps.createNamespacedDeployment({ namespace, body: { metadata: { name: 'd' }, spec } });
  const scale = await apps.readNamespacedDeploymentScale({ namespace, name: 'd' });
  scale.spec.replicas = 3;
  await apps.replaceNamespacedDeploymentScale({ namespace, name: 'd', body: scale });
  const { spec: changed } = await apps.readNamespacedDeployment({ namespace, name: 'd' });
  assert.equal(changed.replicas, 3);
});

await check('custom objects serve when their definition is answered', async () => {
  const schema = { type: 'object', properties: { spec: { type: 'object', properties: { length: { type: 'integer', maximum: 9 } } } } };
  const body = {
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural, singular: 'spoon', kind: 'Spoon' },
      versions: [{ name: version, served: true, storage: true, schema: { openAPIV3Schema: schema } }],
    },
  };
  await definitions.createCustomResourceDefinition({ body });
  const spoon = { apiVersion: `${group}/${version}`, kind: 'Spoon', metadata: { name: 's' }, spec: { length: 3 } };
  await custom.createNamespacedCustomObject({ group, version, plural, namespace, body: spoon });
  spoon.metadata.name = 'long';
  spoon.spec.length = 10;
  const refused = custom.createNamespacedCustomObject({ group, version, plural, namespace, body: spoon });
  await assert.rejects(refused, (e) => e.code === 422 && e.body.includes('should be less than or equal to 9'));
});

await check('objects of any kind, with apply on the server', async () => {
  const spoon = { apiVersion: `${group}/${version}`, kind: 'Spoon', metadata: { name: 's', namespace }, spec: { length: 4 } };
  const applied = await objects.patch(spoon, undefined, undefined, 'node', true, k8s.PatchStrategy.ServerSideApply);
  assert.equal(applied.spec.length, 4);
  const read = await objects.read(spoon);
  assert.ok(read.metadata.managedFields.some((m) => m.manager === 'node' && m.operation === 'Apply'));
});

await check('a watch tells of changes', async () => {
  const seen = [];
  const watch = new k8s.Watch(config);
  const path = `/apis/${group}/${version}/namespaces/${namespace}/${plural}`;
  const abort = await watch.watch(path, {}, (type, o) => seen.push(`${type} ${o.metadata.name}`), () => {});
  await soon(() => seen.includes('ADDED s'));
  await custom.deleteNamespacedCustomObject({ group, version, plural, namespace, name: 's' });
  await soon(() => seen.includes('DELETED s'));
  abort.abort();
});

await check('an informer keeps what is there', async () => {
  const list = () => core.listNamespacedConfigMap({ namespace });
  const informer = k8s.makeInformer(config, `/api/v1/namespaces/${namespace}/configmaps`, list);
  await informer.start();
  await core.createNamespacedConfigMap({ namespace, body: map('two', {}) });
  await soon(() => informer.get('two', namespace) !== undefined);
  await core.deleteNamespacedConfigMap({ namespace, name: 'two' });
  await soon(() => informer.get('two', namespace) === undefined);
  await informer.stop();
});

await check('who am I, and what may I do', async () => {
  const review = await config.makeApiClient(k8s.AuthorizationV1Api).createSelfSubjectAccessReview({
    body: { spec: { resourceAttributes: { verb: 'delete', resource: 'nodes' } } },
  });
  assert.equal(review.status.allowed, true);
});

server.kill();
await once(server, 'exit');
rmSync(folder, { recursive: true, force: true });
console.log(`# ${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
