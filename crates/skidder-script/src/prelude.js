// What scripts find: events, `require` and its modules. Run once in each session, before the script; it is given the functions
// that reach events and processors, and leaves `Event`, `require` and a way to start and to run. Written for readers: nothing here
// is on the way of a script that only uses `Get` and `Put`, but for one call.
(function (native) {
  'use strict';
  // Stands for an object of an event, which is looked at through a view.
  var OBJECT = Symbol.iterator;
  var ordinary = Object.prototype;

  // Keys of a view are keys as they are, dots included: a zero byte stands before each of them.
  function join(path, key) {
    return path + '\0' + key;
  }

  function read(id, path) {
    var value = native.get(id, path);
    return value === OBJECT ? view(id, path) : value;
  }

  // An object of an event as an object of JavaScript: what is changed in it is changed in the event.
  function view(id, path) {
    return new Proxy({}, {
      get: function (_, key) {
        if (typeof key === 'symbol') { return ordinary[key]; }
        var value = read(id, join(path, key));
        return value === undefined ? ordinary[key] : value;
      },
      set: function (_, key, value) {
        native.put(id, join(path, String(key)), value);
        return true;
      },
      has: function (_, key) {
        return typeof key !== 'symbol' && native.get(id, join(path, key)) !== undefined;
      },
      deleteProperty: function (_, key) {
        native.remove(id, join(path, String(key)));
        return true;
      },
      ownKeys: function () { return native.keys(id, path); },
      getOwnPropertyDescriptor: function (_, key) {
        if (typeof key === 'symbol') { return undefined; }
        var value = read(id, join(path, key));
        if (value === undefined) { return undefined; }
        return { value: value, writable: true, enumerable: true, configurable: true };
      }
    });
  }

  function asked(name, count, given) {
    if (given.length !== count) {
      var words = ['no arguments', 'one argument', 'two arguments'];
      throw new Error(name + ' requires ' + words[count]);
    }
  }

  function orNull(value) {
    return value === undefined ? null : value;
  }

  var methods = {
    Get: function (field) {
      if (field === undefined) { return this.fields; }
      return orNull(read(this._private, String(field)));
    },
    Put: function (field, value) {
      asked('Put', 2, arguments);
      return orNull(native.put(this._private, String(field), value));
    },
    Rename: function (from, to) {
      asked('Rename', 2, arguments);
      return native.rename(this._private, String(from), String(to));
    },
    Delete: function (field) {
      asked('Delete', 1, arguments);
      return native.remove(this._private, String(field));
    },
    Cancel: function () { native.cancel(this._private); },
    Tag: function (tag) {
      asked('Tag', 1, arguments);
      native.append(this._private, 'tags', String(tag), true);
    },
    AppendTo: function (field, value) {
      asked('AppendTo', 2, arguments);
      native.append(this._private, String(field), String(value), false);
    }
  };

  function prepare(event, id) {
    Object.defineProperty(event, '_private', { value: id });
    Object.defineProperty(event, 'fields', {
      get: function () { return view(id, ''); },
      set: function () { throw new TypeError('`fields` of an event cannot be replaced; set what is in it'); }
    });
    return event;
  }

  function Event(fields) {
    if (arguments.length !== 1 || fields === null || typeof fields !== 'object') {
      throw new Error('Event constructor requires one argument, an object with the fields');
    }
    prepare(this, native.create(fields));
  }
  Event.prototype = methods;

  var current = prepare(Object.create(methods), 0);

  // `console`: a format as in printf, and everything else behind it.
  function format(values) {
    var rest = Array.prototype.slice.call(values);
    var text = rest.length === 0 ? '' : show(rest.shift());
    text = text.replace(/%[sdifjoO%]/g, function (mark) {
      if (mark === '%%') { return '%'; }
      if (rest.length === 0) { return mark; }
      var value = rest.shift();
      switch (mark) {
        case '%s': return String(value);
        case '%d': case '%f': return String(Number(value));
        case '%i': return String(parseInt(value, 10));
        default: return JSON.stringify(value);
      }
    });
    return [text].concat(rest.map(show)).join(' ');
  }

  function show(value) {
    return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);
  }

  function logger(level) {
    return function () { native.log(level, format(arguments)); };
  }

  // `path`: as Go's packages `path` and `path/filepath`.
  function paths(separator, isSeparator, volumeOf) {
    function cut(path) {
      var volume = volumeOf(path);
      return { volume: volume, rest: path.slice(volume.length) };
    }
    function lastSeparator(text) {
      var at = text.length - 1;
      while (at >= 0 && !isSeparator(text.charAt(at))) { at -= 1; }
      return at;
    }
    function normalize(path) {
      var parts = cut(String(path));
      var rest = parts.rest;
      var rooted = rest !== '' && isSeparator(rest.charAt(0));
      var kept = [], part = '';
      for (var at = 0; at <= rest.length; at += 1) {
        var letter = at < rest.length ? rest.charAt(at) : separator;
        if (!isSeparator(letter)) { part += letter; continue; }
        if (part === '..' && kept.length > 0 && kept[kept.length - 1] !== '..') { kept.pop(); }
        else if (part === '..' && !rooted) { kept.push(part); }
        else if (part !== '' && part !== '.' && part !== '..') { kept.push(part); }
        part = '';
      }
      var cleaned = (rooted ? separator : '') + kept.join(separator);
      var volume = parts.volume.split('/').join(separator);
      return volume + (cleaned === '' && (volume === '' || rest !== '' || volume.charAt(1) === ':') ? '.' : cleaned);
    }
    return {
      basename: function (path) {
        var rest = cut(String(path)).rest;
        if (String(path) === '') { return '.'; }
        while (rest.length > 0 && isSeparator(rest.charAt(rest.length - 1))) { rest = rest.slice(0, -1); }
        rest = rest.slice(lastSeparator(rest) + 1);
        return rest === '' ? separator : rest;
      },
      dirname: function (path) {
        var parts = cut(String(path));
        var directory = parts.rest.slice(0, lastSeparator(parts.rest) + 1);
        var cleaned = normalize(directory);
        return parts.volume === '' ? cleaned
          : parts.volume.split('/').join(separator) + (cleaned === '.' && parts.volume.length > 2 ? '' : cleaned);
      },
      extname: function (path) {
        var name = String(path).slice(lastSeparator(String(path)) + 1);
        var dot = name.lastIndexOf('.');
        return dot < 0 ? '' : name.slice(dot);
      },
      isAbsolute: function (path) {
        var parts = cut(String(path));
        var rooted = parts.rest !== '' && isSeparator(parts.rest.charAt(0));
        return separator === '/' ? rooted : parts.volume.length > 2 || (parts.volume !== '' && rooted);
      },
      normalize: normalize,
      sep: separator
    };
  }

  function windowsVolume(path) {
    if (/^[a-zA-Z]:/.test(path)) { return path.slice(0, 2); }
    var share = /^[\\/]{2}[^\\/.][^\\/]*[\\/][^\\/.][^\\/]*/.exec(path);
    return share === null ? '' : share[0];
  }

  var posix = paths('/', function (letter) { return letter === '/'; }, function () { return ''; });
  var win32 = paths('\\', function (letter) { return letter === '/' || letter === '\\'; }, windowsVolume);

  // `processor`: those of the configuration, for a script to run where it likes.
  function runner(run) {
    return {
      Run: function (event) {
        if (arguments.length !== 1) { throw new Error('Run requires one argument'); }
        if (event === null || typeof event !== 'object' || typeof event._private !== 'number') {
          throw new Error('arg 0 must be an Event');
        }
        if (native.cancelled(event._private)) { return null; }
        run(event);
        return native.cancelled(event._private) ? null : event;
      }
    };
  }

  function make(kind, settings) {
    var place = native.construct(kind, settings === undefined ? {} : settings);
    return runner(function (event) { native.run(place, event._private); });
  }

  function Chain() {
    if (arguments.length > 0) { throw new Error('Chain accepts no arguments'); }
    var steps = [];
    this.Add = function (step) {
      if (typeof step === 'function') { steps.push(step); }
      else if (step !== null && typeof step === 'object' && typeof step.Run === 'function') {
        steps.push(function (event) { step.Run(event); });
      } else {
        throw new Error('Add requires a processor or a function, but got ' + typeof step);
      }
      return this;
    };
    this.Build = function () {
      if (steps.length === 0) { throw new Error('no processors have been added to the chain'); }
      var built = steps.slice();
      return runner(function (event) {
        for (var at = 0; at < built.length && !native.cancelled(event._private); at += 1) {
          built[at](event);
        }
      });
    };
    native.kinds.forEach(function (kind) {
      this[kind[0]] = function (settings) { return this.Add(make(kind[1], settings)); };
    }, this);
  }

  // `windows`: a command line cut into its arguments, as `CommandLineToArgvW` of Windows does it.
  function splitCommandLine(line) {
    var text = String(line), list = [], at = 0;
    function argument() {
      var read = '', slashes = 0, quoted = false;
      for (; at < text.length; at += 1) {
        var letter = text.charAt(at);
        if (letter === '\\') { slashes += 1; continue; }
        if (letter === '"') {
          // Two backslashes before a quote are one, and one before it takes its meaning.
          read += '\\'.repeat(Math.floor(slashes / 2));
          if (slashes % 2 === 1) { read += '"'; }
          else if (quoted && text.charAt(at + 1) === '"') { read += '"'; at += 1; quoted = false; }
          else { quoted = !quoted; }
          slashes = 0;
          continue;
        }
        if (!quoted && (letter === ' ' || letter === '\t')) { break; }
        read += '\\'.repeat(slashes) + letter;
        slashes = 0;
      }
      return read + '\\'.repeat(slashes);
    }
    for (; at < text.length; at += 1) {
      if (text.charAt(at) !== ' ' && text.charAt(at) !== '\t') { list.push(argument()); }
    }
    return list;
  }

  function windows() {
    return { splitCommandLine: splitCommandLine };
  }

  var modules = {
    console: function () {
      return {
        debug: logger('debug'), info: logger('info'), log: logger('info'),
        warn: logger('warn'), error: logger('error')
      };
    },
    net: function () {
      return {
        isIP: function (text) { return native.isIP(String(text)); },
        isIPv4: function (text) { return native.isIP(String(text)) === 4; },
        isIPv6: function (text) { return native.isIP(String(text)) === 6; }
      };
    },
    path: function () {
      return Object.assign({}, posix, { posix: posix, win32: win32 });
    },
    processor: function () {
      var exports = { Chain: Chain };
      native.kinds.forEach(function (kind) {
        exports[kind[0]] = function (settings) { return make(kind[1], settings); };
      });
      return exports;
    },
    windows: windows,
    winlogbeat: windows
  };
  var loaded = {};

  function require(name) {
    if (!Object.prototype.hasOwnProperty.call(loaded, name)) {
      if (!Object.prototype.hasOwnProperty.call(modules, name)) {
        throw new Error("there is no module '" + name + "'; there are " + Object.keys(modules).join(', '));
      }
      loaded[name] = modules[name]();
    }
    return loaded[name];
  }

  function named(name) {
    var value = globalThis[name];
    if (value !== undefined && typeof value !== 'function') { throw new Error(name + ' is not a function'); }
    return value;
  }

  var main;
  function start(params) {
    main = named('process');
    if (main === undefined) { throw new Error('process function not found'); }
    if (params !== undefined) {
      var register = named('register');
      if (register === undefined) {
        throw new Error('params were provided but no register function was found');
      }
      register(params);
    }
    var test = named('test');
    if (test !== undefined) { test(); }
  }

  function hide(name, value) {
    Object.defineProperty(globalThis, name, { value: value });
  }
  globalThis.Event = Event;
  globalThis.require = require;
  hide('__start', start);
  hide('__run', function () { main(current); });
})
