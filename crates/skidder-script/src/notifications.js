// What scripts find that read notifications of a queue: `S3EventV2`. Run once in each session, before the script.
(function () {
  'use strict';
  function S3EventV2() {
    if (arguments.length !== 0) { throw new Error('S3EventV2 takes no arguments'); }
    this.AWSRegion = '';
    this.Provider = '';
    this.EventName = '';
    this.EventSource = '';
    this.S3 = { Bucket: { Name: '', ARN: '' }, Object: { Key: '' } };
  }
  S3EventV2.prototype = {
    constructor: S3EventV2,
    SetAWSRegion: function (text) { this.AWSRegion = String(text); },
    SetProvider: function (text) { this.Provider = String(text); },
    SetEventName: function (text) { this.EventName = String(text); },
    SetEventSource: function (text) { this.EventSource = String(text); },
    SetS3BucketName: function (text) { this.S3.Bucket.Name = String(text); },
    SetS3BucketARN: function (text) { this.S3.Bucket.ARN = String(text); },
    SetS3ObjectKey: function (text) { this.S3.Object.Key = String(text); }
  };

  function XMLDecoder() {
    throw new Error('XMLDecoder is not supported by skidder: take the parts of the text with regular expressions');
  }

  function named(name) {
    var value = globalThis[name];
    if (value !== undefined && typeof value !== 'function') { throw new Error(name + ' is not a function'); }
    return value;
  }

  var main;
  function start(params) {
    main = named('parse');
    if (main === undefined) { throw new Error('parse function not found'); }
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

  // The objects as JSON: region, provider, bucket, its ARN, key.
  function parse(text) {
    var list = main(text);
    if (list === undefined || list === null) { return '[]'; }
    if (!Array.isArray(list)) { throw new Error('parse returned no list of S3EventV2'); }
    return JSON.stringify(list.map(function (event) {
      if (!(event instanceof S3EventV2)) { throw new Error('parse returned a list with something that is no S3EventV2'); }
      var s3 = event.S3;
      return [event.AWSRegion, event.Provider, s3.Bucket.Name, s3.Bucket.ARN, s3.Object.Key].map(String);
    }));
  }

  function hide(name, value) {
    Object.defineProperty(globalThis, name, { value: value });
  }
  globalThis.S3EventV2 = S3EventV2;
  globalThis.XMLDecoder = XMLDecoder;
  hide('__start', start);
  hide('__parse', parse);
})
