// Renders /openapi.json. Text from the description is only ever set as text, never as markup.
"use strict";

const METHODS = ["get", "post", "put", "patch", "delete"];
const byId = (id) => document.getElementById(id);

/** An element: make("p", { class: "quiet" }, "text", child…). */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== null));
  return element;
}

/** Text with `code` spans. */
function prose(text) {
  return text.split(/(`[^`]+`)/).map((part) =>
    part.startsWith("`") && part.length > 2 ? make("code", {}, part.slice(1, -1)) : part);
}

class Description {
  constructor(document) { this.document = document; }

  resolve(node) {
    let seen = 0;
    while (node && node.$ref && seen++ < 16) {
      node = node.$ref.slice(2).split("/").reduce((at, key) => at?.[key], this.document);
    }
    return node ?? {};
  }

  /** A short name for a schema's type. */
  kind(schema) {
    if (!schema) return "any";
    if (schema.$ref) return schema.$ref.split("/").pop();
    const options = schema.oneOf ?? schema.anyOf;
    if (options) return options.map((option) => this.kind(option)).filter((kind) => kind !== "null").join(" | ");
    const types = [].concat(schema.type ?? "any").filter((type) => type !== "null");
    if (types[0] === "array") return `${this.kind(schema.items)}[]`;
    if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
    return types.join(" | ");
  }

  /** All properties of a schema, through allOf; the first alternative of a oneOf. */
  fields(schema, depth = 0) {
    schema = this.resolve(schema);
    const fields = new Map();
    if (depth > 4) return fields;
    for (const part of [...(schema.allOf ?? []), ...(schema.oneOf ?? []).slice(0, 1)]) {
      for (const [name, field] of this.fields(part, depth + 1)) fields.set(name, field);
    }
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      fields.set(name, { schema: property, needed: (schema.required ?? []).includes(name) });
    }
    return fields;
  }

  /** A value that shows a schema's shape. */
  example(schema, depth = 0) {
    const seen = schema;
    schema = this.resolve(schema);
    if (schema.example !== undefined) return schema.example;
    if (schema.examples?.length) return schema.examples[0];
    if (schema.default !== undefined && schema.default !== null) return schema.default;
    if (schema.enum) return schema.enum[0];
    if (depth > 5) return {};
    const options = (schema.oneOf ?? schema.anyOf ?? []).filter((option) => option.type !== "null");
    const types = [].concat(schema.type ?? []).filter((type) => type !== "null");
    if (types[0] === "array") return [this.example(schema.items, depth + 1)];
    const fields = this.fields(seen);
    if (fields.size) {
      const value = {};
      for (const [name, field] of fields) {
        if (field.needed) value[name] = this.example(field.schema, depth + 1);
      }
      return value;
    }
    if (options.length) return this.example(options[0], depth + 1);
    if (schema.pattern) return schema.pattern.replace(/^\^|\$$/g, "").replace(/\[.*/, "…");
    return { string: "", integer: 0, number: 0, boolean: false }[types[0]] ?? {};
  }
}

function fieldTable(api, schema) {
  const fields = api.fields(schema);
  if (!fields.size) return make("p", { class: "quiet" }, api.kind(schema));
  const rows = [...fields].map(([name, field]) => {
    const about = field.schema.description ?? api.resolve(field.schema).description ?? "";
    return make("tr", {}, make("td", {}, make("span", { class: field.needed ? "needed" : "" }, name)),
      make("td", {}, make("code", {}, api.kind(field.schema)), about && " · ", ...prose(about)));
  });
  return make("table", {}, make("tbody", {}, rows));
}

function parameterTable(api, parameters) {
  return make("table", {}, make("tbody", {}, parameters.map((parameter) =>
    make("tr", {}, make("td", {}, make("span", { class: parameter.required ? "needed" : "" }, parameter.name)),
      make("td", { class: "quiet" }, parameter.in),
      make("td", {}, make("code", {}, api.kind(parameter.schema)),
        parameter.description && " · ", ...prose(parameter.description ?? ""))))));
}

function responseDetails(api, status, response) {
  response = api.resolve(response);
  const [type, content] = Object.entries(response.content ?? {})[0] ?? [];
  const about = response.description ?? "";
  const isList = about.startsWith("- ");
  const head = make("summary", {}, make("span", { class: `status s${status[0]}` }, status), " ",
    make("span", { class: "quiet" }, ...(isList ? ["refused"] : prose(about)), type ? ` · ${type}` : ""));
  const details = make("details", { class: "response" }, head);
  if (isList) {
    details.append(make("ul", {}, about.split("\n").map((line) => make("li", {}, ...prose(line.slice(2))))));
  } else if (content?.schema) {
    details.append(fieldTable(api, content.schema));
  }
  return details;
}

/** Fills in a request and sends it to this very server. */
function tryForm(api, method, path, parameters, schema) {
  const inputs = parameters.map((parameter) => ({ parameter, input: make("input", { name: parameter.name }) }));
  const body = schema && make("textarea", { "aria-label": "Body", spellcheck: "false" });
  if (body) body.value = JSON.stringify(api.example(schema), null, 2);
  const answer = make("pre", { hidden: true, "aria-live": "polite" });
  const send = async (event) => {
    event.preventDefault();
    let address = path;
    const query = new URLSearchParams();
    const headers = {};
    for (const { parameter, input } of inputs) {
      if (parameter.in === "path") address = address.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
      else if (!input.value) continue;
      else if (parameter.in === "query") query.append(parameter.name, input.value);
      else if (parameter.in === "header") headers[parameter.name] = input.value;
    }
    if (query.size) address += `?${query}`;
    if (byId("token").value) headers.authorization = `Bearer ${byId("token").value}`;
    if (body) headers["content-type"] = "application/json";
    answer.hidden = false;
    answer.textContent = "…";
    try {
      const response = await fetch(address, { method: method.toUpperCase(), headers, body: body?.value });
      const text = await response.text();
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* it is not JSON: as it came */ }
      answer.textContent = `${response.status} ${response.statusText}\n\n${shown}`;
    } catch (error) {
      answer.textContent = `No answer: ${error.message}`;
    }
  };
  const labels = inputs.map(({ parameter, input }) => make("label", {}, parameter.name, input));
  return make("form", { onsubmit: send }, labels, body, make("button", {}, "Send"), answer);
}

function article(api, method, path, operation) {
  const parameters = (operation.parameters ?? []).map((parameter) => api.resolve(parameter));
  const schema = Object.values(operation.requestBody?.content ?? {})[0]?.schema;
  const details = make("details", {}, make("summary", {},
    make("span", { class: `method ${method}` }, method.toUpperCase()),
    make("span", { class: "path" }, path), make("span", { class: "quiet" }, operation.summary ?? "")));
  // Filled when it is first opened: a long page stays quick.
  details.addEventListener("toggle", () => {
    if (!details.open || details.children.length > 1) return;
    const body = make("div", { class: "body" });
    if (operation.description) body.append(make("p", {}, ...prose(operation.description)));
    if (parameters.length) body.append(make("h4", {}, "Parameters"), parameterTable(api, parameters));
    if (schema) body.append(make("h4", {}, `Body: ${api.kind(schema)}`), fieldTable(api, schema));
    body.append(make("h4", {}, "Answers"));
    for (const [status, response] of Object.entries(operation.responses)) {
      body.append(responseDetails(api, status, response));
    }
    body.append(make("h4", {}, "Try it"), tryForm(api, method, path, parameters, schema));
    details.append(body);
  });
  return make("article", { id: operation.operationId }, details);
}

function show(document_) {
  const api = new Description(document_);
  byId("version").textContent = `API ${document_.info.version}`;
  const main = byId("main");
  const contents = byId("contents");
  main.replaceChildren(make("p", {}, ...prose(document_.info.description ?? "")));
  const entries = [];
  for (const tag of document_.tags ?? []) {
    const section = make("section", {}, make("h2", {}, tag.name), make("p", { class: "quiet" }, tag.description ?? ""));
    const list = make("div", {}, make("h2", {}, tag.name));
    for (const [path, item] of Object.entries(document_.paths)) {
      for (const method of METHODS) {
        const operation = item[method];
        if (!operation?.tags?.includes(tag.name)) continue;
        const shown = article(api, method, path, operation);
        const link = make("a", { href: `#${operation.operationId}` },
          make("span", { class: `method ${method}` }, method.toUpperCase()),
          make("span", {}, operation.operationId.slice(tag.name.length + 1).replaceAll("_", " ")));
        section.append(shown);
        list.append(link);
        const text = JSON.stringify([path, method, operation]).toLowerCase();
        entries.push({ text, shown, link, section, list });
      }
    }
    if (section.querySelector("article")) { main.append(section); contents.append(list); }
  }
  const filter = () => {
    const wanted = byId("search").value.trim().toLowerCase();
    for (const entry of entries) entry.shown.hidden = entry.link.hidden = !entry.text.includes(wanted);
    for (const { section, list } of entries) {
      section.hidden = list.hidden = !section.querySelector("article:not([hidden])");
    }
  };
  byId("search").addEventListener("input", filter);
  const open = () => {
    const wanted = location.hash && document.getElementById(location.hash.slice(1));
    const details = wanted && wanted.querySelector("details");
    if (details) { details.open = true; wanted.scrollIntoView(); }
  };
  addEventListener("hashchange", open);
  open();
}

document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !/INPUT|TEXTAREA/.test(document.activeElement?.tagName)) {
    event.preventDefault();
    byId("search").focus();
  }
});

fetch("/openapi.json")
  .then((response) => response.json())
  .then(show)
  .catch((error) => byId("main").replaceChildren(make("p", {}, `The description cannot be read: ${error.message}`)));
