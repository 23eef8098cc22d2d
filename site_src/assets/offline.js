/* Search when the site is opened from a folder: browsers start no worker from file://, so its script runs in a hidden
   frame of this page instead. The theme's search looks for `IFrameWorker` and then loads its parts by `importScripts`. */
(function () {
  "use strict";
  if (location.protocol !== "file:") return;

  function FrameWorker(address) {
    var worker = new EventTarget();
    var frame = document.createElement("iframe");
    frame.hidden = true;
    document.body.appendChild(frame);
    var inside = frame.contentWindow;
    inside.document.open();
    inside.document.write("<!doctype html><body>");
    inside.document.close();

    function load(script) {
      return new Promise(function (resolve, reject) {
        var element = inside.document.createElement("script");
        element.src = script;
        element.onload = resolve;
        element.onerror = reject;
        inside.document.body.appendChild(element);
      });
    }

    inside.postMessage = function (data) {
      worker.dispatchEvent(new MessageEvent("message", {data: data}));
    };
    inside.importScripts = function () {
      return Array.prototype.reduce.call(arguments, function (before, script) {
        return before.then(function () { return load(script); });
      }, Promise.resolve());
    };
    var ready = load(new URL(address, location.href).href);
    worker.postMessage = function (data) {
      ready.then(function () { inside.dispatchEvent(new inside.MessageEvent("message", {data: data})); });
    };
    return worker;
  }

  window.Worker = FrameWorker;
  window.IFrameWorker = FrameWorker;
})();
