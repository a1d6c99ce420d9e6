"use strict";
// The program of a replay: one time, `state.time`, and everything that is drawn at that time.

const byId = (id) => document.getElementById(id);
const DATA = JSON.parse(byId("data").textContent);
const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const floats = (text) => new Float32Array(bytes(text).buffer);
const poses = floats(DATA.poses); // (step, body, 7) position and quaternion w x y z
const force = floats(DATA.force); // (step, leg) N
const speed = floats(DATA.speed); // (step,) m/s
const signals = bytes(DATA.signals); // (step, signal of the circuit) in 0…255
const signalCount = DATA.names.length;
const legCount = DATA.legs.length;
const lastStep = DATA.steps - 1;
const duration = lastStep * DATA.dt;
const state = { time: 0, playing: true, rate: 1, turn: -0.95, rise: 0.24, distance: 1.55, stale: true };
const stepAt = (time) => Math.round(Math.min(time / DATA.dt, lastStep));
const limited = (value, low, high) => Math.min(high, Math.max(low, value));

// ---- linear algebra: vectors of three, 4 × 4 matrices by columns

const minus = (a, b) => a.map((value, i) => value - b[i]);
const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
const unit = (a) => a.map((value) => value / Math.hypot(...a));
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];

function product(a, b) {
  const result = new Float32Array(16);
  for (let column = 0; column < 4; column++)
    for (let row = 0; row < 4; row++)
      for (let k = 0; k < 4; k++) result[column * 4 + row] += a[k * 4 + row] * b[column * 4 + k];
  return result;
}

function lookAt(eye, target) {
  const z = unit(minus(eye, target)), x = unit(cross([0, 0, 1], z)), y = cross(z, x);
  return new Float32Array([
    x[0], y[0], z[0], 0, x[1], y[1], z[1], 0, x[2], y[2], z[2], 0, -dot(x, eye), -dot(y, eye), -dot(z, eye), 1,
  ]);
}

function perspective(fov, aspect, near, far) {
  const f = 1 / Math.tan(fov / 2), depth = near - far;
  return new Float32Array([f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (far + near) / depth, -1, 0, 0, (2 * far * near) / depth, 0]);
}

function matrixOf([x, y, z, w, i, j, k]) {
  return new Float32Array([
    1 - 2 * (j * j + k * k), 2 * (i * j + w * k), 2 * (i * k - w * j), 0,
    2 * (i * j - w * k), 1 - 2 * (i * i + k * k), 2 * (j * k + w * i), 0,
    2 * (i * k + w * j), 2 * (j * k - w * i), 1 - 2 * (i * i + j * j), 0,
    x, y, z, 1,
  ]);
}

/** Position and quaternion of a body, blended between the two nearest steps. */
function poseOf(body, time) {
  const place = Math.min(time / DATA.dt, lastStep), step = Math.floor(place), share = place - step;
  const at = (t) => poses.subarray((t * DATA.bodies + body) * 7, (t * DATA.bodies + body + 1) * 7);
  const a = at(step), b = at(Math.min(step + 1, lastStep));
  const sign = a[3] * b[3] + a[4] * b[4] + a[5] * b[5] + a[6] * b[6] < 0 ? -1 : 1; // the shorter way round
  const pose = Array.from(a, (value, i) => value + share * ((i < 3 ? 1 : sign) * b[i] - value));
  const length = Math.hypot(pose[3], pose[4], pose[5], pose[6]);
  return pose.map((value, i) => (i < 3 ? value : value / length));
}

// ---- 3-D

const HAZE = [44, 60, 82], ZENITH = [13, 18, 26], FOV = 0.62;
const SUN = unit([0.35, -0.5, 1]);
const VERTEX_SHADER = `
  attribute vec3 place, normal;
  uniform mat4 camera, model;
  uniform bool shadow;
  uniform vec3 sun;
  varying vec3 at, outward;
  void main() {
    vec4 world = model * vec4(place, 1.0);
    if (shadow) world.xyz -= sun * ((world.z - 0.002) / sun.z);  // thrown on the plane
    at = world.xyz;
    outward = mat3(model) * normal;
    gl_Position = camera * world;
  }`;
const PIXEL_SHADER = `
  precision highp float;
  uniform vec3 colour, eye, sun, haze;
  uniform float alpha, near, far;
  uniform bool plain;
  varying vec3 at, outward;
  void main() {
    vec3 n = normalize(outward), view = normalize(eye - at), shade = colour;
    if (!plain) {
      float lit = max(dot(n, sun), 0.0), sky = 0.5 + 0.5 * n.z;
      float gloss = pow(max(dot(n, normalize(sun + view)), 0.0), 32.0), rim = pow(1.0 - max(dot(n, view), 0.0), 3.0);
      shade = colour * (0.30 + 0.28 * sky + 0.55 * lit) + 0.14 * gloss + 0.10 * rim * haze;
    }
    gl_FragColor = vec4(mix(shade, haze, smoothstep(near, far, distance(eye, at))), 1.0) * alpha;
  }`;
const UNIFORMS = ["camera", "model", "shadow", "sun", "colour", "eye", "haze", "alpha", "near", "far", "plain"];

class Scene {
  constructor(canvas, gl) {
    this.canvas = canvas;
    this.gl = gl;
    gl.getExtension("OES_element_index_uint");
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX_SHADER], [gl.FRAGMENT_SHADER, PIXEL_SHADER]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    gl.useProgram(program);
    this.uniforms = Object.fromEntries(UNIFORMS.map((name) => [name, gl.getUniformLocation(program, name)]));
    this.attributes = ["place", "normal"].map((name) => gl.getAttribLocation(program, name));
    this.attributes.forEach((attribute) => gl.enableVertexAttribArray(attribute));
    gl.enable(gl.DEPTH_TEST);
    gl.enable(gl.CULL_FACE);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.uniform3fv(this.uniforms.sun, SUN);
    gl.uniform3fv(this.uniforms.haze, HAZE.map((value) => value / 255));
    this.robot = DATA.robot.map((mesh) => this.load(mesh));
    this.ground = DATA.ground.map((mesh) => this.load(mesh));
    this.disc = this.load(DATA.disc);
    this.legColours = DATA.colours.legs.map((c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16) / 255));
  }

  /** A mesh on the graphics card, with normals averaged over the faces at each vertex. */
  load(mesh) {
    const { gl } = this;
    const vertices = floats(mesh.vertices), faces = new Uint32Array(bytes(mesh.faces).buffer);
    const normals = new Float32Array(vertices.length);
    const at = (i) => [0, 1, 2].map((k) => vertices[3 * i + k]);
    for (let i = 0; i < faces.length; i += 3) {
      const corners = [faces[i], faces[i + 1], faces[i + 2]], [a, b, c] = corners.map(at);
      const normal = cross(minus(b, a), minus(c, a));
      for (const corner of corners) for (let k = 0; k < 3; k++) normals[3 * corner + k] += normal[k];
    }
    const stored = (kind, values) => {
      const buffer = gl.createBuffer();
      gl.bindBuffer(kind, buffer);
      gl.bufferData(kind, values, gl.STATIC_DRAW);
      return buffer;
    };
    return {
      body: mesh.body, colour: mesh.colour, count: faces.length, faces: stored(gl.ELEMENT_ARRAY_BUFFER, faces),
      buffers: [stored(gl.ARRAY_BUFFER, vertices), stored(gl.ARRAY_BUFFER, normals)],
    };
  }

  drawMesh(mesh, matrix, colour) {
    const { gl, uniforms } = this;
    gl.uniformMatrix4fv(uniforms.model, false, matrix);
    gl.uniform3fv(uniforms.colour, colour);
    mesh.buffers.forEach((buffer, i) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.vertexAttribPointer(this.attributes[i], 3, gl.FLOAT, false, 0, 0);
    });
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, mesh.faces);
    gl.drawElements(gl.TRIANGLES, mesh.count, gl.UNSIGNED_INT, 0);
  }

  look(alpha, plain, shadow) {
    this.gl.uniform1f(this.uniforms.alpha, alpha);
    this.gl.uniform1i(this.uniforms.plain, plain);
    this.gl.uniform1i(this.uniforms.shadow, shadow);
  }

  aim() {
    const { gl, canvas, uniforms } = this;
    const scale = Math.min(devicePixelRatio || 1, 2);
    const width = Math.round(canvas.clientWidth * scale), height = Math.round(canvas.clientHeight * scale);
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const [x, y] = poseOf(DATA.trunk, state.time), { turn, rise, distance } = state;
    const target = [x, y, 0.2];
    const eye = [
      x + distance * Math.cos(rise) * Math.cos(turn), y + distance * Math.cos(rise) * Math.sin(turn), 0.2 + distance * Math.sin(rise),
    ];
    const horizon = 50 * (1 - Math.tan(rise) / Math.tan(FOV / 2));
    canvas.style.background = `linear-gradient(rgb(${ZENITH}), rgb(${HAZE}) ${Math.max(0, horizon).toFixed(1)}%)`;
    gl.viewport(0, 0, width, height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT | gl.STENCIL_BUFFER_BIT);
    gl.uniformMatrix4fv(uniforms.camera, false, product(perspective(FOV, width / height, 0.05, 40), lookAt(eye, target)));
    gl.uniform3fv(uniforms.eye, eye);
    gl.uniform1f(uniforms.near, distance + 0.8);
    gl.uniform1f(uniforms.far, distance + 3.6);
  }

  draw() {
    const { gl } = this;
    this.aim();
    this.look(1, false, false);
    const still = matrixOf([0, 0, 0, 1, 0, 0, 0]);
    for (const mesh of this.ground) this.drawMesh(mesh, still, mesh.colour);
    const matrices = Array.from({ length: DATA.bodies }, (_, body) => matrixOf(poseOf(body, state.time)));
    gl.enable(gl.BLEND);
    gl.depthMask(false);
    if (DATA.flat) this.drawShadow(matrices);
    this.drawPressure(matrices);
    gl.disable(gl.BLEND);
    gl.depthMask(true);
    this.look(1, false, false);
    for (const mesh of this.robot) this.drawMesh(mesh, matrices[mesh.body], mesh.colour);
  }

  /** Every pixel at most once, or overlapping parts would be darker. */
  drawShadow(matrices) {
    const { gl } = this;
    gl.enable(gl.STENCIL_TEST);
    gl.stencilFunc(gl.EQUAL, 0, 255);
    gl.stencilOp(gl.KEEP, gl.KEEP, gl.INCR);
    gl.disable(gl.CULL_FACE);
    this.look(0.42, true, true);
    for (const mesh of this.robot) this.drawMesh(mesh, matrices[mesh.body], [0.03, 0.05, 0.08]);
    gl.enable(gl.CULL_FACE);
    gl.disable(gl.STENCIL_TEST);
  }

  /** A disc under every foot that stands, the larger the harder it presses. */
  drawPressure(matrices) {
    this.look(0.75, true, false);
    DATA.feet.forEach((foot, leg) => {
      const pressed = force[stepAt(state.time) * legCount + leg];
      if (pressed <= DATA.stance) return;
      const m = matrices[foot.body], [a, b, c] = foot.place, size = 0.03 + 0.06 * Math.min(1, pressed / DATA.full);
      const [x, y, z] = [0, 1, 2].map((k) => m[k] * a + m[4 + k] * b + m[8 + k] * c + m[12 + k]);
      const matrix = [size, 0, 0, 0, 0, size, 0, 0, 0, 0, 1, 0, x, y, z - foot.size + 0.006, 1];
      this.drawMesh(this.disc, new Float32Array(matrix), this.legColours[leg]);
    });
  }
}

const canvas = byId("scene");
const gl = canvas.getContext("webgl", { antialias: true, stencil: true, alpha: true, preserveDrawingBuffer: true });
const scene = gl && new Scene(canvas, gl);
if (!gl) byId("hint").textContent = "this browser has no WebGL: the time line below works without it";
canvas.addEventListener("pointerdown", (event) => canvas.setPointerCapture(event.pointerId));
canvas.addEventListener("pointermove", (event) => {
  if (!event.buttons) return;
  state.turn -= event.movementX * 0.008;
  state.rise = limited(state.rise + event.movementY * 0.006, 0.02, 1.5);
  state.stale = true;
});
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  state.distance = limited(state.distance * Math.exp(event.deltaY * 0.001), 0.5, 8);
  state.stale = true;
}, { passive: false });

// ---- the time line: gait, footfalls, half-centres

const sheet = document.querySelector("#lines canvas");
const LEFT = 34, RIGHT = 8, SHEET_HEIGHT = 262;
const bold = (size) => `700 ${size}px system-ui, sans-serif`, light = (size) => `${size}px system-ui, sans-serif`;

function drawLines() {
  const scale = devicePixelRatio || 1, width = sheet.clientWidth, pen = sheet.getContext("2d");
  Object.assign(sheet, { width: width * scale, height: SHEET_HEIGHT * scale });
  pen.scale(scale, scale);
  pen.textBaseline = "middle";
  const x = (time) => LEFT + (time / duration) * (width - LEFT - RIGHT);
  drawGaits(pen, x, width);
  DATA.legs.forEach((leg, i) => drawFootfalls(pen, x, leg, i, width));
  if (DATA.pair.length) DATA.sites.forEach((site, i) => drawTraces(pen, x, site, i, width));
  Object.assign(pen, { font: light(11), textAlign: "center", fillStyle: DATA.colours.muted });
  for (let second = 0; second <= duration; second++) pen.fillText(second || "0 s", x(second), 255);
}

function drawGaits(pen, x, width) {
  if (!legCount) return;
  let before = null;
  DATA.gaits.forEach(([from, label], i) => {
    const to = i + 1 < DATA.gaits.length ? DATA.gaits[i + 1][0] : duration;
    pen.fillStyle = DATA.colours.gaits[label];
    pen.fillRect(x(from), 2, x(to) - x(from) + 0.5, 12);
  });
  DATA.gaits.forEach(([from, label]) => {
    if (label !== before && label !== "none" && x(from) < width - 50) {
      Object.assign(pen, { fillStyle: "#0f151e", font: bold(11) });
      pen.fillText(label, x(from) + 5, 8);
    }
    before = label;
  });
  Object.assign(pen, { fillStyle: DATA.colours.muted, font: light(11) });
  pen.fillText("gait", 0, 8);
}

function drawFootfalls(pen, x, leg, number, width) {
  const top = 22 + number * 19;
  Object.assign(pen, { font: bold(12), fillStyle: DATA.colours.legs[number] });
  pen.fillText(leg, 0, top + 8);
  pen.fillStyle = "#1b2431";
  pen.fillRect(LEFT, top, width - LEFT - RIGHT, 15);
  pen.fillStyle = DATA.colours.legs[number];
  for (let step = 0; step < DATA.steps; step++) {
    const pressed = force[step * legCount + number];
    if (pressed <= DATA.stance) continue;
    pen.globalAlpha = 0.25 + 0.75 * Math.min(1, pressed / DATA.full);
    pen.fillRect(x(step * DATA.dt), top, x(DATA.dt) - x(0) + 0.4, 15);
  }
  pen.globalAlpha = 1;
}

function drawTraces(pen, x, leg, number, width) {
  const legs = legCount > 0, row = legs ? 36 : Math.min(36, 220 / DATA.sites.length);
  const floor = legs ? 137 + number * 36 : 18 + (number + 1) * row, colour = DATA.colours.legs[number % 4];
  Object.assign(pen, { font: bold(12), fillStyle: colour, strokeStyle: "#2a3646", lineWidth: 1 });
  pen.fillText(leg, 0, floor - 0.36 * row);
  pen.strokeRect(LEFT, floor + 0.5, width - LEFT - RIGHT, 0);
  DATA.pair.forEach((name, i) => {
    const column = DATA.names.indexOf(`${name}.${leg}`), line = [DATA.colours.flexor, DATA.colours.extensor][i];
    Object.assign(pen, { strokeStyle: line, lineWidth: 1.4 });
    pen.beginPath();
    for (let step = 0; step < DATA.steps; step++)
      pen.lineTo(x(step * DATA.dt), floor - ((row - 8) * signals[step * signalCount + column]) / 255);
    pen.stroke();
    Object.assign(pen, { fillStyle: line, font: light(11), textAlign: "right" });
    if (number === 0) pen.fillText(name.replace("_", " "), width - 10 - (legs ? 60 : 90) * (1 - i), legs ? 102 : 8);
    pen.textAlign = "left";
  });
}

function seek(event) {
  const box = sheet.getBoundingClientRect();
  state.time = limited((event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT), 0, 1) * duration;
  state.stale = true;
}
byId("lines").addEventListener("pointerdown", (event) => {
  byId("lines").setPointerCapture(event.pointerId);
  state.playing = false;
  seek(event);
});
byId("lines").addEventListener("pointermove", (event) => event.buttons && seek(event));

// ---- everything that follows the time

const wiring = document.querySelector(".wiring");

function show() {
  const step = stepAt(state.time);
  if (scene) scene.draw();
  const width = sheet.clientWidth - LEFT - RIGHT;
  byId("head").style.left = `${20 + LEFT + (state.time / duration) * width}px`;
  for (let k = 0; wiring && k < signalCount; k++)
    wiring.style.setProperty(`--s${k}`, (signals[step * signalCount + k] / 255).toFixed(2));
  const [, label, hertz] = DATA.gaits.filter(([from]) => from <= state.time + 1e-6).pop();
  const unnamed = legCount ? ["no steps", "irregular"] : ["still", "undulates"];
  byId("gait").textContent = label !== "none" ? label : unnamed[hertz > 0 ? 1 : 0];
  byId("gait").style.color = DATA.colours.gaits[label];
  byId("hertz").textContent = `${hertz.toFixed(legCount ? 1 : 2)} Hz`;
  const half = Math.round(DATA.speed_window / DATA.dt / 2);
  const around = speed.slice(Math.max(0, step - half), step + half + 1);
  byId("speed").textContent = `${(around.reduce((sum, value) => sum + value, 0) / around.length).toFixed(2)} m/s`;
  byId("target").textContent = `speed (target ${DATA.target.toFixed(2)})`;
  byId("clock").textContent = `${state.time.toFixed(2)} s of ${duration.toFixed(2)} s`;
  byId("play").textContent = state.playing ? "❚❚ pause" : "▶ play";
}

function frame(now, before) {
  if (state.playing) {
    state.time += ((now - before) / 1000) * state.rate;
    if (state.time > duration) state.time = 0;
    state.stale = true;
  }
  if (state.stale) show();
  state.stale = false;
  requestAnimationFrame((next) => frame(next, now));
}

function toggle() {
  state.playing = !state.playing;
  state.stale = true;
}

function stepBy(way) {
  state.playing = false;
  state.time = limited((Math.round(state.time / DATA.dt) + way) * DATA.dt, 0, duration);
  state.stale = true;
}
byId("play").onclick = toggle;
byId("back").onclick = () => stepBy(-1);
byId("on").onclick = () => stepBy(1);
byId("rate").onchange = (event) => (state.rate = Number(event.target.value));
addEventListener("keydown", (event) => {
  if (event.target.tagName === "SELECT") return;
  const action = { " ": toggle, ArrowLeft: () => stepBy(-1), ArrowRight: () => stepBy(1) }[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});
addEventListener("resize", () => {
  drawLines();
  state.stale = true;
});
if (!legCount) [byId("moves").textContent, byId("often").textContent] = ["the body", "waves"];
drawLines();
requestAnimationFrame((now) => frame(now, now));
